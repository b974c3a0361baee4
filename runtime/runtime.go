package runtime

import (
	"errors"
	"net/netip"
	"time"
)

// Errors that a caller can act on. An error that is none of these says nothing
// about the container: look again.
var (
	ErrNotFound      = errors.New("container not found")
	ErrImageNotFound = errors.New("image not found")          // on the host, or after a pull: in its registry
	ErrDenied        = errors.New("registry denied access")   // wrong or missing credentials
	ErrUnavailable   = errors.New("engine is unavailable")    // it did not answer
	ErrPortTaken     = errors.New("port is taken")            // by a process or container that is not ours
	ErrBadCommand    = errors.New("command cannot be run")    // no such program, or not executable
	ErrMountMissing  = errors.New("mount source is missing")  // a bind's directory is not there
	ErrMountRefused  = errors.New("mount is refused")         // by the operator's policy, or berth cannot see to it
	ErrInvalid       = errors.New("engine refused the spec")  // a value it will never take
	ErrUnmanaged     = errors.New("name is taken by another") // a container that is not of this store
	ErrNotRunning    = errors.New("container is not running") // input or a signal for the dead
	ErrRunning       = errors.New("container is running")     // and must be ended before it is removed or replaced
	ErrStalled       = errors.New("pull made no progress")    // for the stall limit
)

// Role is what a container is for.
type Role string

// The roles of a container: the installer runs once, the server runs on demand.
const (
	Install Role = "install"
	Server  Role = "server"
)

// Name names one container. The name in the engine is derived from it and from
// the store's id, so a container made just before a crash is found again after it.
type Name struct {
	ID   string // the client's internal_id
	Role Role
}

// State is what an engine knows of a container. The zero State is "there is none".
type State struct {
	ContainerID string // the engine's
	SpecHash    string // of the spec that it was made from
	Revision    uint64 // of its Spec
	Incarnation string // of its Spec
	Running     bool   // also while paused
	Paused      bool
	StartedAt   time.Time // zero: never started
	FinishedAt  time.Time // zero: never ended; a moment before StartedAt if it ended at once
	ExitCode    int
	OOMKilled   bool
	Live        Live // the limits in force
	TTY         bool
	StopTimeout time.Duration // see Spec; 0: the engine's default
}

// Writable is where a container keeps what it writes outside its mounts.
type Writable struct {
	ContainerID string   // the engine's
	Dirs        []string // directories of the host
	Files       []string // and single files
	Size        int64    // bytes of what has no directory that can be seen
}

// Live is the limits that an engine can change while a container runs. A
// limit can be changed live, but neither appear nor vanish: 0 stays 0.
type Live struct {
	Memory int64   // bytes; 0 is none
	Swap   int64   // bytes beside memory
	CPU    float64 // cores, in billionths; 0 is none
	Pids   int64   // processes and threads; 0 is the engine package's default
	Cpuset string  // such as 0-2,4; empty is all
}

// Spec is what an engine needs to make a container. Everything else about it,
// what hardens it above all, is the engine package's own and the same for all.
type Spec struct {
	Name     Name
	SpecHash string
	Revision uint64 // the store's when the container was asked for; kept in the label io.berth.revision
	// Incarnation is what Revision is counted in; kept in the label io.berth.incarnation. Empty: no label.
	Incarnation string
	Image       string
	Command     []string // nil: the image's own
	Env         []string // KEY=value, sorted
	Mounts      []Mount
	Ports       []Port
	Live        Live
	IOWeight    uint16 // 10 to 1000; 0 is the engine's default
	User        string // name or number, with :group or not; empty: the image's
	Workdir     string // absolute
	TTY         bool
	StopSignal  string // such as SIGINT; empty: the image's
	// StopTimeout is how long an engine that shuts down leaves the container
	// after StopSignal, in whole seconds, rounded up. 0: the engine's default,
	// which is 10 s for Docker.
	StopTimeout time.Duration
	Labels      map[string]string // the client's; never io.berth.*
}

// Mount makes a host directory visible in a container. A missing Source is an
// error, never a new directory.
type Mount struct {
	Source, Target string // absolute paths, of the host and in the container
	ReadOnly       bool
}

// Port publishes a container port on the host.
type Port struct {
	IP            string // of the host
	Port          int    // of the host
	ContainerPort int
	Protocol      string // tcp or udp
}

// Bridge is the host's interface to the containers of one network, and its addresses.
type Bridge struct {
	Interface string // empty: there is none
	Gateways  []netip.Addr
}

// Auth is a registry's credentials, for images of Host alone (of docker.io for
// Docker's own registry). The zero Auth is none.
type Auth struct{ Host, Username, Password string }

// Progress is how far a pull is.
type Progress struct {
	Layers, Done   int   // layers in all, and ready ones
	Current, Total int64 // bytes, of the layers whose size is known
}

// Line is a line of a container's output, without its line end.
type Line struct {
	Time    time.Time // the engine's, ns; the pieces of one line share it
	Data    []byte    // any bytes
	Partial bool      // the line goes on in the next one
}

// Stats is what a container uses. Counters grow from the start of its run.
type Stats struct {
	Read        time.Time
	CPU         time.Duration // used since the start
	Memory      int64         // bytes, without cache
	MemoryLimit int64         // bytes; the host's memory if there is none
	NetworkRx   int64         // bytes received
	NetworkTx   int64         // bytes sent
	BlockRead   int64         // bytes
	BlockWrite  int64         // bytes
	Pids        int64         // processes and threads
}

// Found is one container in an engine's list of this store's containers.
type Found struct {
	Name        Name
	ContainerID string
	Mounts      []string // the host's directories that it mounts, running or not
}

// Target is a run whose console is to be read.
type Target struct {
	ID          string // internal_id
	Role        Role
	ContainerID string
	StartedAt   time.Time // the engine's, of this run
	Ended       bool      // it runs no more: what is left is read once
	TTY         bool
	Pattern     string    // of a server: RE2, matched per line; empty: matched at once
	From        time.Time // berth's clock before the start was tried: no line of this run is older
}
