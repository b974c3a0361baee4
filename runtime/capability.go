package runtime

// Capability is something that an engine may lack. Such an engine refuses a Spec or a Live
// that needs it with ErrInvalid: a limit that is stored and not enforced would be a lie.
type Capability string

// The capabilities that are not common to all engines.
const (
	CanSwap        Capability = "swap"         // Live.Swap
	CanPids        Capability = "pids"         // Live.Pids
	CanCpuset      Capability = "cpuset"       // Live.Cpuset
	CanNoOOMKill   Capability = "no_oom_kill"  // Live.NoOOMKill
	CanIOWeight    Capability = "io_weight"    // Spec.IOWeight
	CanPause       Capability = "pause"        // somebody may pause a container
	CanCountPids   Capability = "count_pids"   // Stats.Pids; 0 without it
	CanDetectPorts Capability = "detect_ports" // ErrPortTaken for a port of a process that is no container
	CanMountHost   Capability = "host_mounts"  // Spec.Mounts of directories that are no volumes
	CanNameUsers   Capability = "user_names"   // Spec.User that is no number
	CanHoldImages  Capability = "held_images"  // images without their registry: its hosts are many
	CanPlace       Capability = "placement"    // Spec.Placement: it has many hosts
	CanAnyEnv      Capability = "any_env"      // names in Spec.Env of other characters than printable ASCII
)
