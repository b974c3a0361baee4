package v1

import "time"

// Container is a container of a client on this host.
type Container = Object[ContainerSpec, ContainerStatus]

// Phase is the state of a container in the words of the interface. Each change of it
// is an event.
type Phase string

// The phases of a container.
const (
	Installing Phase = "installing" // an installation is requested or runs
	Ready      Phase = "ready"      // installed, and not started since
	Starting   Phase = "starting"   // a start was recorded, and the start pattern has not matched
	Running    Phase = "running"
	Stopping   Phase = "stopping" // a graceful stop was recorded, and the container has not exited
	Exit       Phase = "exit"     // the last run has exited
	Failed     Phase = "failed"   // the installation failed for good
	Deleting   Phase = "deleting"
)

// Phases returns all phases in the order of a container's life.
func Phases() []Phase {
	return []Phase{Installing, Ready, Starting, Running, Stopping, Exit, Failed, Deleting}
}

// Active reports whether a phase is that of a run that has not exited.
func (p Phase) Active() bool { return p == Starting || p == Running || p == Stopping }

// Home is the mount point of the volume in a container.
const Home = "/home/container"

// ContainerSpec is the desired state of a container: what a client requests, what it is
// answered, and what is stored. See Fields for the tags.
//
// A request for an action raises a counter, a generation: "restart" raises RunGeneration,
// "reinstall" raises InstallGeneration, "kill" sets KillGeneration to RunGeneration. The
// status records the generation that was carried out. So a request survives a crash and is
// executed once.
type ContainerSpec struct {
	InternalID string     `json:"internal_id,omitempty"`                   // empty in the store: it is Meta.ID
	Image      string     `json:"image,omitempty" recreate:"first"`        // a reference
	PullPolicy PullPolicy `json:"pull_policy,omitempty" default:"missing"` // when the image is pulled
	// in a request also the first 8 characters of the UUID
	VolumeID       string   `json:"volume_id,omitempty" recreate:"first"`
	StartupCommand string   `json:"startup_command,omitempty" recreate:"first"`          // empty: the command of the image
	StartPattern   string   `json:"start_pattern,omitempty"`                             // RE2, matched per line
	StartTimeout   Duration `json:"start_timeout,omitempty"`                             // for StartPattern to match; 0: no limit
	InstallScript  *string  `json:"install_script,omitempty" api:"writeonly" default:""` // may hold secrets; nil in an apply: unchanged
	InstallImage   string   `json:"install_image,omitempty"`                             // empty: Image
	InstallTimeout Duration `json:"install_timeout,omitempty"`                           // 0: an hour

	// where the installer has the volume, and its working directory; empty: Home
	InstallMount      string `json:"install_mount,omitempty"`
	InstallEntrypoint string `json:"install_entrypoint,omitempty"` // the shell of InstallScript: sh, bash or ash; empty: /bin/sh
	InstallUser       string `json:"install_user,omitempty"`       // of the installer; empty: User, or the image's

	Ports  []Port            `json:"ports,omitempty" recreate:"first"`
	Limits Limits            `json:"limits,omitzero" recreate:"first"`
	Env    map[string]string `json:"env,omitempty" recreate:"first"`
	Cpuset string            `json:"cpuset,omitempty"` // such as 0-2,4; empty: all
	// name or number, with :group or not; empty: the image's
	User string `json:"user,omitempty" recreate:"first"`
	// absolute; empty: Home, or the image's if StartupCommand is empty too
	Workdir string `json:"workdir,omitempty" recreate:"first"`
	// RFC 1123 labels; empty: the engine's choice
	Hostname string `json:"hostname,omitempty" recreate:"named"`
	// IANA name for TZ, unless Env has one; empty: the image's
	Timezone     string `json:"timezone,omitempty" recreate:"named"`
	ReadOnlyRoot *bool  `json:"read_only_root,omitempty" default:"false" recreate:"named"` // nil in a request: docker.read_only_root
	// bytes of /dev/shm; 0: the engine's default
	ShmSize       int64             `json:"shm_size,omitempty" recreate:"named"`
	TTY           *bool             `json:"tty,omitempty" default:"true" recreate:"first"` // whether the console is a terminal
	Labels        map[string]string `json:"labels,omitempty" recreate:"first"`
	Mounts        []Mount           `json:"mounts,omitempty" recreate:"first"`
	Placement     Placement         `json:"placement,omitzero" recreate:"named"` // on the machines of a cluster
	Stop          Stop              `json:"stop,omitzero" recreate:"first"`
	RestartPolicy RestartPolicy     `json:"restart_policy,omitzero"`
	RegistryAuth  string            `json:"registry_auth,omitempty"` // a host of docker.registries
	Power         Power             `json:"power,omitempty"`         // empty in a request: unchanged, and stopped at first
	ConfigFiles   []ConfigFile      `json:"config_files,omitempty"`  // set before each start
	DeniedFiles   []string          `json:"denied_files,omitempty"`  // patterns as in .gitignore: files that limited tokens may only list

	InstallGeneration uint64 `json:"install,omitempty" api:"-" recreate:"first"` // the requested installation, from 1
	RunGeneration     uint64 `json:"run,omitempty" api:"-"`                      // the requested run; 0: none yet
	KillGeneration    uint64 `json:"kill_run,omitempty" api:"-"`                 // runs up to this one end without a grace period

	// Arrived is the installation that another node has carried out, before the container was moved here; 0: none.
	Arrived uint64 `json:"arrived,omitempty" api:"-"`

	// Deferred are the fields whose last change needs a new container and waits for the next start.
	Deferred []string `json:"deferred,omitempty" api:"-"`

	RequestedBy Actor `json:"requested_by,omitzero" api:"-"` // of the last change of a generation, of the power to off, or the deletion
}

// Keys returns the volume.
func (s ContainerSpec) Keys() []string { return []string{s.VolumeID} }

// Script returns the install script.
func (s ContainerSpec) Script() string {
	if s.InstallScript == nil {
		return ""
	}
	return *s.InstallScript
}

// Installs reports whether the requested installation runs the install script on this node.
func (s ContainerSpec) Installs() bool { return s.Script() != "" && s.InstallGeneration != s.Arrived }

// Power is the desired power state of a container.
type Power string

// The values of Power.
const (
	PowerOff Power = "stopped"
	PowerOn  Power = "running"
)

// Port publishes a container's port on an address of the host.
type Port struct {
	IP            string `json:"ip" api:"required"` // canonical literal
	Port          int    `json:"port" api:"required"`
	Protocol      string `json:"protocol" api:"required"`  // tcp or udp
	ContainerPort int    `json:"container_port,omitempty"` // 0: the same as Port
}

// IgnoredFields returns the read-only fields of a pool entry, so that one can be sent as a port.
func (Port) IgnoredFields() []string { return []string{"in_use", "container", "firewall"} }

// Limits bound what a container may use. 0 means no limit, or the daemon's default.
type Limits struct {
	Memory   int64   `json:"memory"`              // bytes
	CPU      float64 `json:"cpu"`                 // cores
	Swap     int64   `json:"swap,omitempty"`      // bytes beside memory, or UnlimitedSwap
	Pids     int64   `json:"pids,omitempty"`      // processes and threads; 0: docker.pids_limit
	Disk     int64   `json:"disk,omitempty"`      // bytes of the volume and of what is written outside it
	IOWeight uint16  `json:"io_weight,omitempty"` // 10 to 1000

	// OOMKill is whether the kernel kills a process when the memory is used up; otherwise
	// the processes wait for memory. Nil, the only form of true that is stored: it does.
	OOMKill *bool `json:"oom_kill,omitempty"`
}

// WithoutOOMKill reports whether the kernel must not kill a process when the memory is
// used up.
func (l Limits) WithoutOOMKill() bool { return l.OOMKill != nil && !*l.OOMKill }

// UnlimitedSwap is the value of Limits.Swap for all swap of the host.
const UnlimitedSwap = -1

// PullPolicy determines when an image is pulled.
type PullPolicy string

// The values of PullPolicy.
const (
	PullMissing PullPolicy = "missing" // when it is not on the host
	PullAlways  PullPolicy = "always"  // also before each start of the server
	PullNever   PullPolicy = "never"
)

// Mount makes a directory of the host visible in a container.
type Mount struct {
	Source   string `json:"source"` // absolute path of the host
	Target   string `json:"target"` // absolute path in the container
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Stop configures the graceful stop of a run: a console command or a signal. A run
// that has not exited after Timeout is killed.
type Stop struct {
	Command string   `json:"command,omitempty"`
	Signal  string   `json:"signal,omitempty"`  // both empty: SIGTERM
	Timeout Duration `json:"timeout,omitempty"` // 0: 30 s
}

// RestartPolicy determines whether a run that exited is started again.
type RestartPolicy struct {
	Mode string `json:"mode" default:"on-failure"` // never, on-failure or always
}

// The modes of RestartPolicy.
const (
	RestartNever     = "never"
	RestartOnFailure = "on-failure"
	RestartAlways    = "always"
)

// ContainerStatus is the observed state of a container.
type ContainerStatus struct {
	Phase              Phase       `json:"phase"`
	Seq                uint64      `json:"seq"`            // of the event that reported Phase
	Actor              Actor       `json:"actor,omitzero"` // of that event
	Since              time.Time   `json:"since"`
	ContainerID        string      `json:"container_id"`        // the engine's, of the server container
	ObservedGeneration uint64      `json:"observed_generation"` // of the spec that the last step used
	Message            string      `json:"message,omitempty"`
	Conditions         []Condition `json:"conditions,omitempty"`

	ObservedInstall uint64 `json:"installed"`                // the last installation that finished
	InstallFailed   bool   `json:"install_failed,omitempty"` // it failed
	InstallID       string `json:"install_id,omitempty"`     // the engine's, of an installer that exited and has to be removed
	StartedInstall  uint64 `json:"install_begun,omitempty"`  // the last installation whose begin was recorded
	InstallVolume   string `json:"install_volume,omitempty"` // the volume that it uses
	// by berth's clock, before the call of the engine; zero: its installer was not started
	InstallStartedAt time.Time `json:"install_started_at,omitzero"`

	// the volume that the server container mounts; recorded before the container is created
	ServerVolume string `json:"server_volume,omitempty"`

	// ServerExpansion is the Expansion of the spec that the server container was created from.
	ServerExpansion string `json:"server_expansion,omitempty"`

	ObservedRun     uint64     `json:"ran"`                      // the last run whose start was recorded
	StartedBefore   time.Time  `json:"started_before,omitzero"`  // the engine's time of the start before it
	StartRecordedAt time.Time  `json:"start_noted_at,omitzero"`  // by berth's clock, before the call of the engine
	StartedAt       *time.Time `json:"started_at,omitempty"`     // the engine's
	FinishedAt      *time.Time `json:"finished_at,omitempty"`    // the engine's
	StopRecordedAt  time.Time  `json:"stop_noted_at,omitzero"`   // when the current graceful stop was recorded
	StopSent        bool       `json:"stop_sent,omitempty"`      // whether its signal or command was sent
	ExitCode        *int       `json:"exit_code,omitempty"`      // of the last run, or of a failed installation
	OOMKilled       bool       `json:"oom_killed,omitempty"`     // the last run ran out of memory
	OOMAt           time.Time  `json:"oom_at,omitzero"`          // the engine's time of the last kill of a process that a run survived
	RestartCount    int        `json:"restart_count,omitempty"`  // starts without a request since the last one
	Crashes         int        `json:"crashes,omitempty"`        // consecutive, for the backoff
	Unrequested     bool       `json:"unrequested,omitempty"`    // the run that is being stopped was started from outside
	RemovedID       string     `json:"removed_id,omitempty"`     // the engine's, of the last server container that berth removed
	ImagePulled     string     `json:"image_pulled,omitempty"`   // the start for which PullAlways has pulled the image; see package container
	OutdatedID      string     `json:"outdated_id,omitempty"`    // the engine's, of a server container whose image's tag was moved
	LimitsRefused   string     `json:"limits_refused,omitempty"` // the attempt to change limits that the engine refused
	NextRetryAt     *time.Time `json:"next_retry_at,omitempty"`  // of a restart by policy, or of a start that failed
	UnreadySince    *time.Time `json:"unready_since,omitempty"`  // since when Unready returns a reason
	Totals          Totals     `json:"totals,omitzero"`
	BootID          string     `json:"boot_id,omitempty"` // of the host, when the run began
	// of a cluster, that the run or installation is or was on; empty: unknown, or there is one only
	Machine string `json:"machine,omitempty"`
	Engine  string `json:"engine,omitempty"` // the instance of the engine of the run or installation; empty: unknown
}

// Deadline returns when the running installation, or the start, of a container is ended, by
// the host's clock; nil: no limit applies, or the engine has not begun the run yet. The limit is
// measured from the last start of berth if that is later.
func Deadline(c Container) *time.Time {
	st, at := c.Status, time.Time{}
	started := FindCondition(st.Conditions, Started)
	switch {
	case st.Phase == Installing && !st.InstallStartedAt.IsZero():
		at = st.InstallStartedAt.Add(c.Spec.InstallLimit())
	case st.Phase == Starting && c.Spec.StartTimeout > 0 && started.Reason != ReasonStartWaits:
		if at = st.StartRecordedAt; started.Since.After(at) { // the engine needed longer for it
			at = started.Since
		}
		at = at.Add(time.Duration(c.Spec.StartTimeout))
	default:
		return nil
	}
	return &at
}

// InstallLimit returns the time after which an installation is ended.
func (s ContainerSpec) InstallLimit() time.Duration {
	if s.InstallTimeout > 0 {
		return time.Duration(s.InstallTimeout)
	}
	return time.Hour
}

// Totals count since the container's creation.
type Totals struct {
	Restarts uint64 `json:"restarts,omitempty"`  // runs that began without a request
	Crashes  uint64 `json:"crashes,omitempty"`   // runs and starts that failed and that nobody asked to end
	OOMKills uint64 `json:"oom_kills,omitempty"` // runs that ran out of memory
	Runs     uint64 `json:"runs,omitempty"`      // runs that were running
	Exits    uint64 `json:"exits,omitempty"`     // runs that have exited
}

// IsInstalling reports whether a requested installation has not finished.
func IsInstalling(c Container) bool {
	return c.Status.Phase == Installing || c.Status.ObservedInstall < c.Spec.InstallGeneration
}

// Keys returns the volumes that the containers on the engine may have mounted: that
// of the server, and that of the installer until it is removed.
func (s ContainerStatus) Keys() []string {
	var list []string
	if s.ServerVolume != "" {
		list = append(list, s.ServerVolume)
	}
	if s.InstallVolume != "" && s.InstallVolume != s.ServerVolume && (s.StartedInstall > s.ObservedInstall || s.InstallID != "") {
		list = append(list, s.InstallVolume)
	}
	return list
}

// InstallStateOf returns the install_state of the interface: Installing from the request
// to the end of an installation, then Ready or Failed.
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
	ImageAvailable = "ImageAvailable" // the engine can make a container from the image
	ImageCurrent   = "ImageCurrent"   // of PullAlways: the registry had no other image at the last start
	Installed      = "Installed"      // the installation ended with exit code 0
	Started        = "Started"        // a run has started: Unknown until its start pattern matched, False after its exit
	LimitsApplied  = "LimitsApplied"  // the limits are in force in the engine
	Reconciled     = "Reconciled"     // the last step succeeded; absent: no step has failed
	DiskPressure   = "DiskPressure"   // the volume is over its limit

	// Pending is True while fields wait for the next start, which its message names. It is absent
	// until some did.
	Pending = "Pending"

	// VolumeReady is False while the directory of the volume is missing on the host. It is
	// absent until the directory is.
	VolumeReady = "VolumeReady"

	// VolumeWritable is False if the user of the container cannot write its volume. It is absent
	// until that was so.
	VolumeWritable = "VolumeWritable"

	// ConfigFilesApplied reports whether the values of config_files are set. It is absent
	// before the first start, and without config_files.
	ConfigFilesApplied = "ConfigFilesApplied"

	// StartPatternNotMatched is True if a run has been starting for long. It is absent
	// until a run is.
	StartPatternNotMatched = "StartPatternNotMatched"

	// MachineReachable is Unknown while the machine that the container runs on does not answer,
	// and the status is the one that was observed last. It is absent until that was so. An
	// engine of one host has EngineReachable alone.
	MachineReachable = "MachineReachable"

	// EngineReachable is derived when a container is read, and not stored. While it is
	// False, the status is the one that was observed last.
	EngineReachable = "EngineReachable"
)

// The types of conditions of the node, beside EngineReachable.
const (
	StoreWritable = "StoreWritable"
	// KernelResources is False while a resource that all containers share is nearly used up.
	KernelResources = "KernelResources"
	ClockSteady     = "ClockSteady"     // the clock of the host has not jumped
	ContainersStart = "ContainersStart" // False while the host cannot start any container
)

// Reasons that code acts on.
const (
	ReasonImageNotFound = "ImageNotFound"
	ReasonPulling       = "Pulling"
	ReasonPullFailed    = "PullFailed" // the registry has not answered yet
	ReasonOutOfMemory   = "OutOfMemory"
	ReasonKilled        = "Killed"        // with no time to save, or after a stop that took too long
	ReasonStartWaits    = "StartWaits"    // the start goes on in the engine, and needs longer
	ReasonStartTimedOut = "StartTimedOut" // the start pattern did not match within StartTimeout
	ReasonInstallSlow   = "InstallSlow"   // the installer has run for long
	ReasonOverLimit     = "OverLimit"     // the volume and the files outside it are over the limit
	ReasonRootOverLimit = "RootOverLimit" // the files outside the volume are over docker.root_limit

	ReasonAnswers            = "Answers"
	ReasonHostFault          = "HostFault" // the operator has to repair the host
	ReasonStarted            = "Started"
	ReasonMachineUnreachable = "MachineUnreachable"
	ReasonEngineUnreachable  = "EngineUnreachable"
	ReasonWritable           = "Writable"
	ReasonNotWritable        = "NotWritable"
	ReasonEnough             = "Enough"
	ReasonNearlyUsedUp       = "NearlyUsedUp"
	ReasonClockJumped        = "ClockJumped"
	ReasonSteady             = "Steady"
)
