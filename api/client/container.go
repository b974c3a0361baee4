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
	VolumeID       string            `json:"volume_id,omitempty"` // a UUID, or its first 8 characters
	StartupCommand string            `json:"startup_command,omitempty"`
	StartPattern   string            `json:"start_pattern,omitempty"`  // RE2, matched per line
	InstallScript  *string           `json:"install_script,omitempty"` // never returned; nil in Apply: unchanged
	InstallImage   string            `json:"install_image,omitempty"`
	InstallTimeout v1.Duration       `json:"install_timeout,omitempty"`
	Ports          []v1.Port         `json:"ports,omitempty"`
	Limits         v1.Limits         `json:"limits,omitzero"`
	Env            map[string]string `json:"env,omitempty"`
	Cpuset         string            `json:"cpuset,omitempty"`
	User           string            `json:"user,omitempty"`
	Workdir        string            `json:"workdir,omitempty"`
	TTY            *bool             `json:"tty,omitempty"` // nil: true
	Labels         map[string]string `json:"labels,omitempty"`
	Mounts         []v1.Mount        `json:"mounts,omitempty"`
	Stop           v1.Stop           `json:"stop,omitzero"`
	RestartPolicy  v1.RestartPolicy  `json:"restart_policy,omitzero"`
	RegistryAuth   string            `json:"registry_auth,omitempty"` // a host of docker.registries
	Power          v1.Power          `json:"power,omitempty"`         // empty in Apply: unchanged
}

// Container is a container with its observed state. Its spec has no install script.
type Container struct {
	ContainerSpec
	UID          string   `json:"uid"`          // of this creation; a later one of the same InternalID has another
	ContainerID  string   `json:"container_id"` // the engine's; empty until the engine has created one
	InstallState v1.Phase `json:"install_state"`
	State        v1.Phase `json:"state"`
	Mount        struct {
		Source string `json:"source"` // the volume's directory on the host
		Target string `json:"target"`
	} `json:"mount"`
	CreatedAt          int64          `json:"created_at"` // Unix seconds
	UpdatedAt          int64          `json:"updated_at"` // Unix seconds
	Generation         uint64         `json:"generation"` // counts the changes of the spec
	ObservedGeneration uint64         `json:"observed_generation"`
	ResourceVersion    string         `json:"resource_version"` // changes with each change; for ApplyOptions.IfMatch
	Conditions         []v1.Condition `json:"conditions"`
	ExitCode           *int           `json:"exit_code"` // of the last run, or of a failed installation
	OOMKilled          bool           `json:"oom_killed"`
	RestartCount       int            `json:"restart_count"`
	NextRetryAt        *time.Time     `json:"next_retry_at"`
	StartedAt          *time.Time     `json:"started_at"`
	Message            string         `json:"message"` // why the container is in its state; empty: nothing to report
}

// Observed reports whether the status is about the current spec: no request is
// still waiting for the daemon.
func (c Container) Observed() bool { return c.ObservedGeneration >= c.Generation }

// Summary is a container in a list.
type Summary struct {
	InternalID   string            `json:"internal_id"`
	ContainerID  string            `json:"container_id"`
	InstallState v1.Phase          `json:"install_state"`
	Image        string            `json:"image"`
	State        v1.Phase          `json:"state"`
	Power        v1.Power          `json:"power"`
	VolumeID     string            `json:"volume_id"`
	Labels       map[string]string `json:"labels"`
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
