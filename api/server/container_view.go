package server

import (
	"cmp"
	"strconv"
	"time"

	v1 "berth/api/v1"
)

// containerView is a container as clients see it. It has no install_script, which
// may hold secrets.
type containerView struct {
	InternalID     string    `json:"internal_id"`
	UID            string    `json:"uid"`
	ContainerID    string    `json:"container_id"` // empty until the engine has created one
	VolumeID       string    `json:"volume_id"`
	Image          string    `json:"image"`
	StartupCommand string    `json:"startup_command"`
	StartPattern   string    `json:"start_pattern"`
	InstallState   v1.Phase  `json:"install_state"`
	Ports          []v1.Port `json:"ports"`
	Limits         v1.Limits `json:"limits"`
	Mount          mountView `json:"mount"`
	CreatedAt      int64     `json:"created_at"`
	UpdatedAt      int64     `json:"updated_at"`

	stateView
	Power              v1.Power       `json:"power"`
	Generation         uint64         `json:"generation"`
	ObservedGeneration uint64         `json:"observed_generation"`
	ResourceVersion    string         `json:"resource_version"`
	Conditions         []v1.Condition `json:"conditions"`

	InstallImage   string            `json:"install_image"`
	InstallTimeout v1.Duration       `json:"install_timeout"`
	InstallMount   string            `json:"install_mount"`
	InstallShell   string            `json:"install_entrypoint"`
	StartTimeout   v1.Duration       `json:"start_timeout"`
	Env            map[string]string `json:"env"`
	Cpuset         string            `json:"cpuset"`
	User           string            `json:"user"`
	Workdir        string            `json:"workdir"`
	Hostname       string            `json:"hostname"`
	Timezone       string            `json:"timezone"`
	ReadOnlyRoot   bool              `json:"read_only_root"`
	TTY            bool              `json:"tty"`
	Labels         map[string]string `json:"labels"`
	Mounts         []v1.Mount        `json:"mounts"`
	Stop           v1.Stop           `json:"stop"`
	RestartPolicy  v1.RestartPolicy  `json:"restart_policy"`
	RegistryAuth   string            `json:"registry_auth"`
	PullPolicy     v1.PullPolicy     `json:"pull_policy"`
	ConfigFiles    []v1.ConfigFile   `json:"config_files"`
}

// stateView is the observed state of a container, in a response and in a list.
type stateView struct {
	State        v1.Phase   `json:"state"`
	StateSince   time.Time  `json:"state_since"`
	Deadline     *time.Time `json:"deadline"`
	ExitCode     *int       `json:"exit_code"`
	OOMKilled    bool       `json:"oom_killed"`
	RestartCount int        `json:"restart_count"`
	NextRetryAt  *time.Time `json:"next_retry_at"`
	StartedAt    *time.Time `json:"started_at"`
	Message      *string    `json:"message"`
}

func stateOf(o v1.Container) stateView {
	st := o.Status
	v := stateView{
		State: phase(o), StateSince: st.Since.UTC(), Deadline: utc(v1.Deadline(o)),
		ExitCode: st.ExitCode, OOMKilled: st.OOMKilled, RestartCount: st.RestartCount,
		NextRetryAt: utc(st.NextRetryAt), StartedAt: utc(st.StartedAt), Message: orNull(st.Message),
	}
	if v.State != st.Phase { // requested, and not yet recorded by the controller
		v.StateSince, v.Deadline = o.Meta.UpdatedAt.UTC(), nil
	}
	return v
}

type mountView struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// phase returns the state that clients see. A requested installation or deletion
// shows at once, before the controller has begun it.
func phase(o v1.Container) v1.Phase {
	switch {
	case o.Meta.Deleted:
		return v1.Deleting
	case v1.IsInstalling(o) && !o.Status.Phase.Active():
		return v1.Installing
	}
	return o.Status.Phase
}

func viewOf(o v1.Container, volumePath string, conditions []v1.Condition) containerView {
	spec, status := o.Spec, o.Status
	return containerView{
		InternalID: o.Meta.ID, UID: o.Meta.UID, ContainerID: status.ContainerID, VolumeID: spec.VolumeID,
		Image: spec.Image, StartupCommand: spec.StartupCommand, StartPattern: spec.StartPattern,
		InstallState: v1.InstallStateOf(o), Ports: append([]v1.Port{}, spec.Ports...), Limits: spec.Limits,
		Mount:     mountView{volumePath, v1.Home},
		CreatedAt: o.Meta.CreatedAt.Unix(), UpdatedAt: o.Meta.UpdatedAt.Unix(),

		stateView: stateOf(o), Power: spec.Power,
		Generation: o.Meta.Generation, ObservedGeneration: status.ObservedGeneration,
		ResourceVersion: strconv.FormatUint(o.Meta.Revision, 10),
		Conditions:      conditions,

		InstallImage: spec.InstallImage, InstallTimeout: spec.InstallTimeout, StartTimeout: spec.StartTimeout,
		InstallMount: spec.InstallMount, InstallShell: spec.InstallEntrypoint,
		Env: orEmpty(spec.Env), Cpuset: spec.Cpuset, User: spec.User, Workdir: spec.Workdir,
		Hostname: spec.Hostname, Timezone: spec.Timezone, ReadOnlyRoot: spec.ReadOnlyRoot, TTY: spec.TTY,
		Labels: orEmpty(spec.Labels), Mounts: append([]v1.Mount{}, spec.Mounts...),
		Stop: spec.Stop, RestartPolicy: spec.RestartPolicy, RegistryAuth: spec.RegistryAuth,
		PullPolicy:  cmp.Or(spec.PullPolicy, v1.PullMissing),
		ConfigFiles: append([]v1.ConfigFile{}, spec.ConfigFiles...),
	}
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// etag returns the ETag of a container: its quoted revision.
func etag(o v1.Container) string { return strconv.Quote(strconv.FormatUint(o.Meta.Revision, 10)) }

// summaryView is a container in a list.
type summaryView struct {
	InternalID   string   `json:"internal_id"`
	ContainerID  string   `json:"container_id"` // empty until the engine has created one
	InstallState v1.Phase `json:"install_state"`
	Image        string   `json:"image"`
	stateView
	Power    v1.Power          `json:"power"`
	VolumeID string            `json:"volume_id"`
	Ports    []v1.Port         `json:"ports"`
	Labels   map[string]string `json:"labels"`
}

func summaryOf(o v1.Container) summaryView {
	return summaryView{o.Meta.ID, o.Status.ContainerID, v1.InstallStateOf(o), o.Spec.Image,
		stateOf(o), o.Spec.Power, o.Spec.VolumeID, append([]v1.Port{}, o.Spec.Ports...), orEmpty(o.Spec.Labels)}
}
