package v1

import (
	"time"
)

// Node is this host as a panel's list of nodes shows it.
type Node struct {
	Node       string          `json:"node"` // remote.node, else the hostname
	Version    string          `json:"version"`
	StartedAt  time.Time       `json:"started_at"` // when the daemon started
	OS         string          `json:"os"`         // such as Debian GNU/Linux 12 (bookworm)
	Kernel     string          `json:"kernel"`
	Arch       string          `json:"arch"` // such as amd64
	CPUs       int             `json:"cpus"`
	Memory     int64           `json:"memory"` // bytes
	Disk       NodeDisks       `json:"disk"`
	Engine     NodeEngine      `json:"engine"`
	Allocated  Allocated       `json:"allocated"`
	Containers map[Phase]int   `json:"containers"` // number of those in each state
	Features   map[string]bool `json:"features"`   // features that are in force
	Conditions []Condition     `json:"conditions"` // of the node itself; one that is missing was always True
}

// NodeDisks are the file systems of the daemon's directories.
type NodeDisks struct {
	Data    DiskSpace            `json:"data"`    // of storage.data_path
	Volumes DiskSpace            `json:"volumes"` // of storage.volumes_path
	Claims  map[string]DiskSpace `json:"claims"`  // of kubernetes.claims, by the storage that a volume names
}

// DiskSpace is the space of a file system in bytes; both 0: unknown.
type DiskSpace struct {
	Total int64 `json:"total"`
	Free  int64 `json:"free"` // for users without privileges
}

// NodeEngine is the engine, as it answered last.
type NodeEngine struct {
	Name          string   `json:"name"`  // docker or kubernetes
	Lacks         []string `json:"lacks"` // what it cannot do, such as swap: requests that need it are refused
	Reachable     bool     `json:"reachable"`
	Version       string   `json:"version"` // empty, like the others: it has not answered yet
	API           string   `json:"api"`
	StorageDriver string   `json:"storage_driver"`
	CgroupVersion string   `json:"cgroup_version"`
	LiveRestore   bool     `json:"live_restore"`
	StatsError    string   `json:"stats_error"` // why there are no statistics of containers; empty: there are

	// of a cluster, at most MaxMachines, those that are not ready first; empty: it has its host only
	Machines []EngineMachine `json:"machines"`
}

// MaxMachines is how many machines of a cluster an answer has.
const MaxMachines = 1000

// EngineMachine is one of the machines of a cluster.
type EngineMachine struct {
	Name       string `json:"name"`
	Ready      bool   `json:"ready"`      // it reports that it is well
	Closed     bool   `json:"closed"`     // it takes no new containers, because an operator has closed it
	CPUs       int    `json:"cpus"`       // for containers
	Memory     int64  `json:"memory"`     // bytes, for containers
	Containers int    `json:"containers"` // of this berth, that run or are installed there
}

// Allocated sums the limits of all containers that are not being deleted. A limit that is
// not set counts 0.
type Allocated struct {
	Memory int64   `json:"memory"` // bytes
	CPU    float64 `json:"cpu"`    // cores
	Disk   int64   `json:"disk"`   // bytes
}

// Add adds the limits of a container. A sum that does not fit is the largest number.
func (a Allocated) Add(l Limits) Allocated {
	return Allocated{addCapped(a.Memory, l.Memory), a.CPU + l.CPU, addCapped(a.Disk, l.Disk)}
}

// addCapped adds two numbers that are not negative.
func addCapped(a, b int64) int64 {
	const most = 1<<63 - 1
	if a > most-b {
		return most
	}
	return a + b
}

// Features returns what a configuration switches on, by name.
func (c Config) Features() map[string]bool {
	return map[string]bool{
		"remote":         c.Remote.Enabled,
		"tls":            c.Server.TLS.Enabled(),
		"hard_limits":    c.Storage.HardLimit == HardLimitAuto,
		"read_only_root": c.Docker.ReadOnlyRoot,
		"mounts":         len(c.Docker.AllowedMounts) > 0,
		"firewall":       c.Firewall.Backend != BackendNone,
		"egress_filter":  c.Firewall.EgressFilter && c.Firewall.Backend != BackendNone,
		"public_metrics": c.Metrics.Public,
		"ui":             c.UI.Enabled,
		"pprof":          c.Debug.Pprof,
		"sftp":           c.SFTP.Enabled,
		"pull":           c.Files.Pull,
		"backups_s3":     c.Backups.S3.Endpoint != "",
	}
}

// Stats is the current usage of a container, in the words of the interface. Counters
// grow from the start of its run.
type Stats struct {
	CPUUsage    float64 `json:"cpu_usage"`    // percent of one core
	MemoryUsage int64   `json:"memory_usage"` // bytes, without cache
	MemoryLimit int64   `json:"memory_limit"` // bytes; the host's memory if there is none
	NetworkRx   int64   `json:"network_rx"`   // bytes
	NetworkTx   int64   `json:"network_tx"`
	BlockRead   int64   `json:"block_read"`
	BlockWrite  int64   `json:"block_write"`
	Pids        int64   `json:"pids"`       // processes and threads
	Uptime      int64   `json:"uptime"`     // seconds since the run began
	DiskUsage   *int64  `json:"disk_usage"` // bytes of the volume; null: not measured yet
}
