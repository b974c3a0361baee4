package server

import (
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

	State              v1.Phase       `json:"state"`
	Power              v1.Power       `json:"power"`
	Generation         uint64         `json:"generation"`
	ObservedGeneration uint64         `json:"observed_generation"`
	ResourceVersion    string         `json:"resource_version"`
	Conditions         []v1.Condition `json:"conditions"`
	ExitCode           *int           `json:"exit_code"`
	OOMKilled          bool           `json:"oom_killed"`
	RestartCount       int            `json:"restart_count"`
	NextRetryAt        *time.Time     `json:"next_retry_at"`
	StartedAt          *time.Time     `json:"started_at"`
	Message            *string        `json:"message"`

	InstallImage   string            `json:"install_image"`
	InstallTimeout v1.Duration       `json:"install_timeout"`
	Env            map[string]string `json:"env"`
	Cpuset         string            `json:"cpuset"`
	User           string            `json:"user"`
	Workdir        string            `json:"workdir"`
	TTY            bool              `json:"tty"`
	Labels         map[string]string `json:"labels"`
	Mounts         []v1.Mount        `json:"mounts"`
	Stop           v1.Stop           `json:"stop"`
	RestartPolicy  v1.RestartPolicy  `json:"restart_policy"`
	RegistryAuth   string            `json:"registry_auth"`
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

		State: phase(o), Power: spec.Power,
		Generation: o.Meta.Generation, ObservedGeneration: status.ObservedGeneration,
		ResourceVersion: strconv.FormatUint(o.Meta.Revision, 10),
		Conditions:      conditions,
		ExitCode:        status.ExitCode, OOMKilled: status.OOMKilled, RestartCount: status.RestartCount,
		NextRetryAt: utc(status.NextRetryAt), StartedAt: utc(status.StartedAt), Message: orNull(status.Message),

		InstallImage: spec.InstallImage, InstallTimeout: spec.InstallTimeout,
		Env: orEmpty(spec.Env), Cpuset: spec.Cpuset, User: spec.User, Workdir: spec.Workdir, TTY: spec.TTY,
		Labels: orEmpty(spec.Labels), Mounts: append([]v1.Mount{}, spec.Mounts...),
		Stop: spec.Stop, RestartPolicy: spec.RestartPolicy, RegistryAuth: spec.RegistryAuth,
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
	InternalID   string            `json:"internal_id"`
	ContainerID  string            `json:"container_id"` // empty until the engine has created one
	InstallState v1.Phase          `json:"install_state"`
	Image        string            `json:"image"`
	State        v1.Phase          `json:"state"`
	Power        v1.Power          `json:"power"`
	VolumeID     string            `json:"volume_id"`
	Labels       map[string]string `json:"labels"`
}

// measuredView is a container in a list with its resource usage; stats is null if
// it does not run.
type measuredView struct {
	summaryView
	Stats *v1.Stats `json:"stats"`
}

type measuredBody struct {
	Containers []measuredView `json:"containers"`
}

type containersBody struct {
	Containers []summaryView `json:"containers"`
}

func summaryOf(o v1.Container) summaryView {
	return summaryView{o.Meta.ID, o.Status.ContainerID, v1.InstallStateOf(o), o.Spec.Image,
		phase(o), o.Spec.Power, o.Spec.VolumeID, orEmpty(o.Spec.Labels)}
}
