package client

import (
	"time"

	v1 "berth/api/v1"
)

// ContainerSpec is the desired state of a container, as a client sends it. InternalID,
// Image and VolumeID are required. A field that is empty has its default.
type ContainerSpec struct {
	InternalID     string            `json:"internal_id"`
	Image          string            `json:"image,omitempty"`
	PullPolicy     v1.PullPolicy     `json:"pull_policy,omitempty"` // empty: missing
	VolumeID       string            `json:"volume_id,omitempty"`   // a UUID, or its first 8 characters
	StartupCommand string            `json:"startup_command,omitempty"`
	StartPattern   string            `json:"start_pattern,omitempty"`  // RE2, matched per line
	StartTimeout   v1.Duration       `json:"start_timeout,omitempty"`  // for StartPattern to match; 0: no limit
	InstallScript  *string           `json:"install_script,omitempty"` // never returned; nil in Apply: unchanged
	InstallImage   string            `json:"install_image,omitempty"`
	InstallTimeout v1.Duration       `json:"install_timeout,omitempty"`
	InstallMount   string            `json:"install_mount,omitempty"`
	InstallShell   string            `json:"install_entrypoint,omitempty"` // sh, bash or ash
	Ports          []v1.Port         `json:"ports,omitempty"`
	Limits         v1.Limits         `json:"limits,omitzero"`
	Env            map[string]string `json:"env,omitempty"`
	Cpuset         string            `json:"cpuset,omitempty"`
	User           string            `json:"user,omitempty"`
	Workdir        string            `json:"workdir,omitempty"`
	Hostname       string            `json:"hostname,omitempty"`
	Timezone       string            `json:"timezone,omitempty"`       // IANA name
	ReadOnlyRoot   *bool             `json:"read_only_root,omitempty"` // nil: docker.read_only_root of the daemon
	TTY            *bool             `json:"tty,omitempty"`            // nil: true
	Labels         map[string]string `json:"labels,omitempty"`
	Mounts         []v1.Mount        `json:"mounts,omitempty"`
	Stop           v1.Stop           `json:"stop,omitzero"`
	RestartPolicy  v1.RestartPolicy  `json:"restart_policy,omitzero"`
	RegistryAuth   string            `json:"registry_auth,omitempty"` // a host of docker.registries
	Power          v1.Power          `json:"power,omitempty"`         // empty in Apply: unchanged
	ConfigFiles    []v1.ConfigFile   `json:"config_files,omitempty"`  // set before each start
}

// Container is a container with its observed state. Its spec has no install script.
type Container struct {
	ContainerSpec
	UID          string   `json:"uid"`          // of this creation; a later one of the same InternalID has another
	ContainerID  string   `json:"container_id"` // the engine's; empty until the engine has created one
	InstallState v1.Phase `json:"install_state"`
	ContainerState
	Mount struct {
		Source string `json:"source"` // the volume's directory on the host
		Target string `json:"target"`
	} `json:"mount"`
	CreatedAt          int64          `json:"created_at"` // Unix seconds
	UpdatedAt          int64          `json:"updated_at"` // Unix seconds
	Generation         uint64         `json:"generation"` // counts the changes of the spec
	ObservedGeneration uint64         `json:"observed_generation"`
	ResourceVersion    string         `json:"resource_version"` // changes with each change; for ApplyOptions.IfMatch
	Conditions         []v1.Condition `json:"conditions"`
}

// ContainerState is the observed state of a container, in a response and in a list.
type ContainerState struct {
	State        v1.Phase   `json:"state"`
	StateSince   time.Time  `json:"state_since"`
	Deadline     *time.Time `json:"deadline"`  // when the daemon ends the installation or the start; nil: no limit applies
	ExitCode     *int       `json:"exit_code"` // of the last run, or of a failed installation
	OOMKilled    bool       `json:"oom_killed"`
	RestartCount int        `json:"restart_count"`
	NextRetryAt  *time.Time `json:"next_retry_at"`
	StartedAt    *time.Time `json:"started_at"`
	Message      string     `json:"message"` // why the container is in its state; empty: nothing to report
}

// Observed reports whether the status is about the current spec: no request is
// still waiting for the daemon.
func (c Container) Observed() bool { return c.ObservedGeneration >= c.Generation }

// Summary is a container in a list.
type Summary struct {
	InternalID   string   `json:"internal_id"`
	ContainerID  string   `json:"container_id"`
	InstallState v1.Phase `json:"install_state"`
	Image        string   `json:"image"`
	ContainerState
	Power    v1.Power          `json:"power"`
	VolumeID string            `json:"volume_id"`
	Ports    []v1.Port         `json:"ports"`
	Labels   map[string]string `json:"labels"`
}

// Measured is a container in a list with its resource usage.
type Measured struct {
	Summary
	Stats *v1.Stats `json:"stats"` // nil: the container does not run, or is not measured yet
}

// Changes are what applying a spec would do.
type Changes struct {
	Changed bool `json:"changed"`
	Actions []struct {
		Action string `json:"action"` // create, update, recreate, start or stop
		Reason string `json:"reason"`
	} `json:"actions"`
}

// Line is one line of a console.
type Line struct {
	Time time.Time `json:"time"`
	Data string    `json:"data"`
}
