package runtime

// EngineInfo is what an engine reports about itself and its host.
type EngineInfo struct {
	Version       string // such as 28.5.2
	API           string // highest version of its API
	Kernel        string
	OS            string
	StorageDriver string
	CgroupVersion string // 1 or 2
	LiveRestore   bool
	CPUs          int    // of its host, or of all its machines
	Memory        int64  // bytes, of all its machines; 0: that of its host
	Root          string // directory of its images and containers
	Limits        EngineLimits
	MapsUsers     bool      // it maps the users of containers to others of its host
	Firewall      string    // how it publishes ports, such as iptables; empty: unknown, or not at all
	Machines      []Machine // of a cluster, by their names; nil: it has its host only
	Denied        []string  // what berth needs to do in a cluster and may not, such as "patch pods/resize"; nil also if nobody has looked
	Foreign       []string  // containers of other stores in the same place of a cluster, some of them; nil also if nobody has looked
	StatsError    string    // why it has no statistics of containers; empty: it has
}

// Machine is one of the machines of a cluster.
type Machine struct {
	Name   string
	Ready  bool  // it reports that it is well
	Closed bool  // it takes no new containers, because an operator has closed it
	CPUs   int   // for containers
	Memory int64 // bytes, for containers
}

// EngineLimits names the limits of containers that the engine can enforce.
type EngineLimits struct {
	Memory, Swap, CPU, Pids bool
}
