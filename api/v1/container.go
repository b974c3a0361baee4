package v1

import "time"

// Container is a container that a client wants on this host.
type Container = Object[ContainerSpec, ContainerStatus]

// Phase is where a container is on its way, in the words of the interface.
// Each change of it is an event.
type Phase string

// The phases of a container.
const (
	Installing Phase = "installing" // its installation is wanted, or runs
	Ready      Phase = "ready"      // installed, and never started since
	Starting   Phase = "starting"   // a start was tried, and the start pattern has not matched
	Running    Phase = "running"
	Stopping   Phase = "stopping" // asked to end, and not dead yet
	Exit       Phase = "exit"     // its last run has ended
	Failed     Phase = "failed"   // its installation failed for good
	Deleting   Phase = "deleting"
)

// Phases lists every phase, in the order of a container's life.
var Phases = []Phase{Installing, Ready, Starting, Running, Stopping, Exit, Failed, Deleting}

// Active says whether a phase tells of a run that has not ended.
func (p Phase) Active() bool { return p == Starting || p == Running || p == Stopping }

// Home is where a container sees its volume.
const Home = "/home/container"

// ContainerSpec is what the client asked for. Verbs are ordinals: "restart"
// raises Run, "reinstall" raises Install, "kill" sets KillGeneration to Run. So a wish
// survives a crash and is carried out once.
type ContainerSpec struct {
	Image          string            `json:"image"`
	VolumeID       string            `json:"volume_id"` // full UUID
	StartupCommand string            `json:"startup_command"`
	StartPattern   string            `json:"start_pattern"` // RE2, matched per line
	InstallScript  string            `json:"install_script"`
	InstallImage   string            `json:"install_image,omitempty"`   // empty: Image
	InstallTimeout Duration          `json:"install_timeout,omitempty"` // 0: an hour
	Ports          []Port            `json:"ports"`
	Limits         Limits            `json:"limits"`
	Env            map[string]string `json:"env,omitempty"`
	Cpuset         string            `json:"cpuset,omitempty"`  // such as 0-2,4; empty: all
	User           string            `json:"user,omitempty"`    // name or number, with :group or not; empty: the image's
	Workdir        string            `json:"workdir,omitempty"` // absolute; empty: Home
	TTY            bool              `json:"tty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Mounts         []Mount           `json:"mounts,omitempty"`
	Stop           Stop              `json:"stop"`
	RestartPolicy  RestartPolicy     `json:"restart_policy"`
	RegistryAuth   string            `json:"registry_auth,omitempty"` // a host of docker.registries
	Power          Power             `json:"power"`

	InstallGeneration uint64 `json:"install"`            // the installation wanted, from 1
	RunGeneration     uint64 `json:"run"`                // the run wanted; 0 is none yet
	KillGeneration    uint64 `json:"kill_run,omitempty"` // runs up to this one end without grace
}

// Power is whether the client wants a container to run.
type Power string

// The wishes of Power.
const (
	PowerOff Power = "stopped"
	PowerOn  Power = "running"
)

// Port publishes a container's port on an address of the host.
type Port struct {
	IP            string `json:"ip"` // canonical literal
	Port          int    `json:"port"`
	Protocol      string `json:"protocol"`                 // tcp or udp
	ContainerPort int    `json:"container_port,omitempty"` // 0: the same as Port
}

// Limits bound what a container may use. 0 means no limit, or the daemon's default.
type Limits struct {
	Memory   int64   `json:"memory"`              // bytes
	CPU      float64 `json:"cpu"`                 // cores
	Swap     int64   `json:"swap,omitempty"`      // bytes beside memory
	Pids     int64   `json:"pids,omitempty"`      // processes and threads; 0: docker.pids_limit
	Disk     int64   `json:"disk,omitempty"`      // bytes of the volume and of what is written outside it
	IOWeight uint16  `json:"io_weight,omitempty"` // 10 to 1000
}

// Mount makes a directory of the host visible in a container.
type Mount struct {
	Source   string `json:"source"` // absolute path of the host
	Target   string `json:"target"` // absolute path in the container
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Stop is how a run is asked to end: a line for its console, or a signal. What
// is still alive after Timeout is killed.
type Stop struct {
	Command string   `json:"command,omitempty"`
	Signal  string   `json:"signal,omitempty"`  // both empty: SIGTERM
	Timeout Duration `json:"timeout,omitempty"` // 0: 30 s
}

// RestartPolicy says what follows a run that ended by itself.
type RestartPolicy struct {
	Mode string `json:"mode"` // never, on-failure or always
}

// The modes of RestartPolicy.
const (
	RestartNever     = "never"
	RestartOnFailure = "on-failure"
	RestartAlways    = "always"
)

// ContainerStatus is what berth observed.
type ContainerStatus struct {
	Phase              Phase       `json:"phase"`
	Seq                uint64      `json:"seq"` // of the transition that told Phase
	Since              time.Time   `json:"since"`
	ContainerID        string      `json:"container_id"`        // the engine's, of the server container
	ObservedGeneration uint64      `json:"observed_generation"` // of the last step's spec
	Message            string      `json:"message,omitempty"`
	Conditions         []Condition `json:"conditions,omitempty"`

	ObservedInstall uint64 `json:"installed"`                // the last installation that came to an end
	InstallFailed   bool   `json:"install_failed,omitempty"` // it ended badly
	InstallID       string `json:"install_id,omitempty"`     // the engine's, of an installer that has ended and is to be removed
	StartedInstall  uint64 `json:"install_begun,omitempty"`  // the last installation noted as begun
	InstallVolume   string `json:"install_volume,omitempty"` // the volume that it works on

	ServerVolume string `json:"server_volume,omitempty"` // the volume that the engine's server container mounts; recorded before it is made

	ObservedRun     uint64     `json:"ran"`                      // the last run noted as begun
	StartedBefore   time.Time  `json:"started_before,omitzero"`  // the engine's StartedAt seen before it
	StartRecordedAt time.Time  `json:"start_noted_at,omitzero"`  // berth's clock, before the start was tried
	StartedAt       *time.Time `json:"started_at,omitempty"`     // the engine's
	FinishedAt      *time.Time `json:"finished_at,omitempty"`    // the engine's
	StopRecordedAt  time.Time  `json:"stop_noted_at,omitzero"`   // the graceful stop under way was noted then
	StopSent        bool       `json:"stop_sent,omitempty"`      // and its signal or command was sent
	ExitCode        *int       `json:"exit_code,omitempty"`      // of the last run, or of a failed installation
	OOMKilled       bool       `json:"oom_killed,omitempty"`     // the last run ran out of memory
	RestartCount    int        `json:"restart_count,omitempty"`  // restarts by policy since the wish
	Crashes         int        `json:"crashes,omitempty"`        // in a row, for the backoff
	Unrequested     bool       `json:"unrequested,omitempty"`    // the run being stopped was started from outside
	RemovedID       string     `json:"removed_id,omitempty"`     // the engine's, of the last server container that berth removed
	LimitsRefused   string     `json:"limits_refused,omitempty"` // the attempt to change limits that the engine did not carry out
	NextRetryAt     *time.Time `json:"next_retry_at,omitempty"`  // of a restart by policy, or of a start that failed
	BootID          string     `json:"boot_id,omitempty"`        // of the host, when the run began
	Engine          string     `json:"engine,omitempty"`         // the instance of the engine under which the run or the installation goes on; empty: unknown
}

// IsInstalling says whether an installation is wanted that has not come to its end.
func IsInstalling(c Container) bool {
	return c.Status.Phase == Installing || c.Status.ObservedInstall < c.Spec.InstallGeneration
}

// Volumes returns the volumes that the engine's containers may have mounted: the
// server's, and the installer's until it is removed.
func (s ContainerStatus) Volumes() []string {
	var list []string
	if s.ServerVolume != "" {
		list = append(list, s.ServerVolume)
	}
	if s.InstallVolume != "" && s.InstallVolume != s.ServerVolume && (s.StartedInstall > s.ObservedInstall || s.InstallID != "") {
		list = append(list, s.InstallVolume)
	}
	return list
}

// InstallStateOf is what the interface calls install_state: from the wish for an
// installation to its end it is Installing, then Ready or Failed.
func InstallStateOf(c Container) Phase {
	switch {
	case IsInstalling(c):
		return Installing
	case c.Status.InstallFailed:
		return Failed
	}
	return Ready
}

// The types of a container's conditions.
const (
	ImageAvailable = "ImageAvailable" // the image is on the host
	Installed      = "Installed"      // the installation ended with exit code 0
	Started        = "Started"        // a run goes on: Unknown until its start pattern matched, False after its exit
	LimitsApplied  = "LimitsApplied"  // the engine has put the limits in force
	Reconciled     = "Reconciled"     // the last step succeeded; absent: none has failed
	DiskPressure   = "DiskPressure"   // the volume is over its limit

	// EngineReachable is derived when it is read, and not stored: while the engine
	// does not answer, what is stored is what was observed last.
	EngineReachable = "EngineReachable"
)

// Reasons that code acts on.
const (
	ReasonImageNotFound = "ImageNotFound"
	ReasonOverLimit     = "OverLimit"     // the volume, with what was written outside it, is over its limit
	ReasonRootOverLimit = "RootOverLimit" // what was written outside the volume is over docker.root_limit
)
