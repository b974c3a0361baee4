package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// Errors that a caller can act on. Any other error says nothing about the
// container: observe it again.
var (
	ErrNotFound      = errors.New("container not found")
	ErrImageNotFound = errors.New("image not found")              // on the host; after a pull: in its registry
	ErrOtherMachine  = errors.New("image is for another machine") // for another architecture or system
	ErrImageInUse    = errors.New("image is in use")              // a container was created from it
	ErrNoSpace       = errors.New("not enough free space")        // for an image, on the engine's disk
	ErrDenied        = errors.New("registry denied access")       // wrong or missing credentials
	ErrUnavailable   = errors.New("engine is unavailable")        // it did not answer
	ErrPortTaken     = errors.New("port is taken")                // by another process or container
	ErrNoAddress     = errors.New("address is not on the host")   // of a port
	ErrBadCommand    = errors.New("command cannot be run")        // no such program, or it is not executable
	ErrHost          = errors.New("host cannot start containers") // not for the sake of this one: its operator has to repair it
	ErrMountMissing  = errors.New("mount source is missing")      // the directory of a bind mount does not exist
	ErrMountRefused  = errors.New("mount is refused")             // by the operator's policy, or berth cannot check it
	ErrInvalid       = errors.New("engine refused the spec")      // it will never accept one of the values
	ErrUnmanaged     = errors.New("name is taken by another")     // by a container without this store's label
	ErrInputFull     = errors.New("container does not read")      // its standard input
	ErrNotRunning    = errors.New("container is not running")     // so it takes no input and has no statistics
	ErrRunning       = errors.New("container is running")         // and must exit before it is removed or replaced
	ErrStalled       = errors.New("pull made no progress")        // for the stall limit
	ErrStarting      = errors.New("start is in progress")         // it continues: start again to wait for it
	ErrNoRoom        = errors.New("no machine has room")          // for the limits of the spec; nothing was started
	ErrLost          = errors.New("machine does not answer")      // the one that a container runs on: it may run on
)

// CallError is the error of a call of the engine.
type CallError struct {
	Call   string // such as start
	Object string // such as server container mc
	Err    error  // the cause
}

// Error returns the call, the object and the cause.
func (e *CallError) Error() string { return e.Call + " " + e.Object + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// Role is what a container is for.
type Role string

// The roles of a container: the installer runs once, the server runs on demand.
const (
	Install Role = "install"
	Server  Role = "server"
)

// Name identifies one container. The engine's name is derived from it and from
// the store's id, so a container that was created just before a crash is found
// after the restart.
type Name struct {
	ID   string // the client's internal_id
	Role Role
}

// String returns the name for errors and logs, such as "server container mc".
func (n Name) String() string {
	if n.Role == "" {
		return n.ID
	}
	return string(n.Role) + " container " + n.ID
}

// State is the engine's view of a container. The zero State means that the
// container does not exist.
type State struct {
	ContainerID string // the engine's
	ImageID     string // the engine's, of the image that it was created from
	SpecHash    string // of the spec that it was created from
	Revision    uint64 // of its Spec
	Incarnation string // of its Spec
	Running     bool   // also while paused
	OwnLog      bool   // Logs has the output of the current or last run alone; otherwise that of all runs
	Machine     string // the one of a cluster that it runs or ran on; empty: none yet, or there is one only
	Starting    bool   // a start goes on that returned ErrStarting; Kill and Remove take it back
	Leaving     bool   // it runs, and others have begun to end the run: it has its stop timeout to exit
	Paused      bool
	StartedAt   time.Time // zero: never started
	FinishedAt  time.Time // zero: never exited; slightly before StartedAt if it exited at once
	ExitCode    int
	OOMKilled   bool
	Interrupted bool      // the run ended with its machine, or had to leave it: the exit is not the program's own
	OOMAt       time.Time // of the last process of this run that the kernel killed for its memory; zero: unknown
	Live        Live      // the limits in force
	TTY         bool
	Detached    bool          // it is not connected to the network of the containers
	StopSignal  string        // see Spec; of the image if the Spec has none; empty: the engine's default
	StopTimeout time.Duration // see Spec; 0: the engine's default
}

// Account is the user of a container's processes. UID -1: the engine does not know it, because
// the image has only the user's name.
type Account struct{ UID, GID int }

// Writable lists the places on the host that hold what a container writes
// outside its mounts.
type Writable struct {
	Name        Name
	ContainerID string   // the engine's
	Local       bool     // it runs, these are all its places, on this host, and Size is 0
	Dirs        []string // directories of the host
	Files       []string // and single files
	Size        int64    // bytes in places without a directory on this host
}

// Live holds the limits that an engine can change while a container runs. A live
// update can neither add nor remove a limit: 0 stays 0.
type Live struct {
	Memory int64   // bytes; 0 is none
	Swap   int64   // bytes beside memory; -1 is no limit
	CPU    float64 // cores, in billionths; 0 is none
	Pids   int64   // processes and threads; 0 is the engine package's default
	Cpuset string  // such as 0-2,4; empty is all

	// NoOOMKill keeps the kernel from killing a process when Memory is used up. It takes
	// effect at the creation of a container, and an engine may ignore it.
	NoOOMKill bool
}

// Spec describes the container that an engine creates. The engine package sets
// everything else, in particular the hardening, and sets it for all alike.
type Spec struct {
	Name     Name
	SpecHash string
	Revision uint64 // of the store when the container was requested; stored in the label io.berth.revision
	// Incarnation identifies the store's history that Revision belongs to. It is
	// stored in the label io.berth.incarnation. Empty: no label.
	Incarnation string
	Image       string
	Command     []string // nil: the image's own
	Entrypoint  bool     // Command follows the entrypoint of the image
	Env         []string // KEY=value, sorted
	Mounts      []Mount
	Ports       []Port
	Live        Live
	IOWeight    uint16 // 10 to 1000; 0 is the engine's default
	User        string // name or number, with :group or not; empty: the image's
	Workdir     string // absolute; empty: the image's, or Home if it has none
	Home        string // the variable HOME of a user without one and without an account in the image; empty: /
	Hostname    string // RFC 1123 labels; empty: the engine's choice
	MachineID   string // the content of /etc/machine-id, unless ReadOnlyRoot; empty: the image's
	// ReadOnlyRoot makes the root file system read-only, with a writable file system of
	// bounded size in memory at /tmp and /run.
	ReadOnlyRoot bool
	ShmSize      int64 // bytes of /dev/shm; 0: the engine's default
	Placement    Placement
	TTY          bool
	StopSignal   string // such as SIGINT; empty: the image's
	// StopTimeout is the time between StopSignal and SIGKILL when the engine
	// shuts down, in whole seconds, rounded up. 0: the engine's default, which is
	// 10 s for Docker.
	StopTimeout time.Duration
	Labels      map[string]string // of the client; engines drop io.berth.*
}

// Placement bounds the hosts of an engine that has many.
type Placement struct {
	NodeSelector  map[string]string // labels of the host
	Tolerations   []Toleration      // of taints of the host
	RuntimeClass  string            // empty: the engine's default
	PriorityClass string            // empty: the engine's default
}

// IsZero reports whether p bounds nothing.
func (p Placement) IsZero() bool {
	return len(p.NodeSelector) == 0 && len(p.Tolerations) == 0 && p.RuntimeClass == "" && p.PriorityClass == ""
}

// Toleration is a taint that does not keep a container from a host.
type Toleration struct {
	Key, Value, Effect string // empty: any value, or each effect
}

// WorkdirWith returns the working directory of a container whose image has one, or none. It returns ErrInvalid if
// that is in a file system of the kernel, whose entries may lead to the host (CVE-2024-21626).
func (s Spec) WorkdirWith(image string) (string, error) {
	if s.Workdir != "" {
		return s.Workdir, nil
	}
	if image == "" {
		return s.Home, nil
	}
	dir := path.Join("/", image)
	if first, _, _ := strings.Cut(dir[1:], "/"); slices.Contains([]string{"proc", "sys", "dev"}, first) {
		return "", fmt.Errorf("%w: the image's working directory %s is in /%s: set a workdir", ErrInvalid, dir, first)
	}
	return dir, nil
}

// Mount makes a host directory visible in a container. A missing Source is an
// error: the engine never creates it.
type Mount struct {
	Source, Target string // absolute paths, of the host and in the container
	ReadOnly       bool
	Claim          string // of a cluster, whose root is Source; empty: Source is a part of a larger one
}

// Port publishes a container port on the host.
type Port struct {
	IP            string // of the host
	Port          int    // of the host
	ContainerPort int
	Protocol      string // tcp or udp
}

// Bridge is the host's network interface to the containers of one network.
type Bridge struct {
	Interface string // empty: the network has no bridge
	Gateways  []netip.Addr
}

// Auth holds credentials for the registry Host and no other. Docker's own
// registry is docker.io. The zero Auth means no credentials.
type Auth struct{ Host, Username, Password string }

// Progress is the progress of a pull.
type Progress struct {
	Layers, Done   int   // number of layers, and of complete ones
	Current, Total int64 // bytes, of the layers whose size is known
}

// Line is a line of a container's output, without its line end.
type Line struct {
	Time    time.Time // of the engine's clock, in ns; the parts of one line share it
	Data    []byte    // any bytes
	Partial bool      // the next Line continues this one
}

// Stats is the resource usage of a container. Counters start at 0 with each run.
type Stats struct {
	Read        time.Time     // with a monotonic part: its age holds when the clock is set
	CPU         time.Duration // CPU time since the start of the run
	Memory      int64         // bytes, without the page cache
	MemoryLimit int64         // bytes; without a limit the host's memory
	NetworkRx   int64         // bytes received
	NetworkTx   int64         // bytes sent
	BlockRead   int64         // bytes
	BlockWrite  int64         // bytes
	Pids        int64         // processes and threads
}

// Found is one container in an engine's list of this store's containers.
type Found struct {
	Name Name

	// State is what a list shows: ContainerID, SpecHash, Running, Starting, Paused and Detached. StartedAt of a run
	// is zero if the list does not show it, and another one than that of Inspect if it shows about when a new run began.
	State
	Mounts []string // host directories that it mounts, also while it does not run
}

// Target identifies a run whose console is read.
type Target struct {
	ID          string // internal_id
	Role        Role
	ContainerID string
	StartedAt   time.Time // start of this run, by the engine's clock
	Ended       bool      // the run has exited: the remaining output is read once
	TTY         bool
	OwnLog      bool      // see State
	Pattern     string    // start pattern of a server: RE2, matched per line; empty: matches at once
	From        time.Time // berth's clock before it called Start: no line of this run is older
}

// Family is a family of IP addresses.
type Family string

// The families.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// Families returns both.
func Families() []Family { return []Family{IPv4, IPv6} }

// Has reports whether an address is of the family.
func (f Family) Has(a netip.Addr) bool { return a.Is6() == (f == IPv6) }

// PortRule admits incoming packets to one address and one range of ports.
type PortRule struct {
	Protocol    string     // tcp or udp
	IP          netip.Addr // the unspecified address means every address of its family
	First, Last uint16
}

// Sleep waits for d, or returns the error of ctx if it ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
