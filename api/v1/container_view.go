package v1

import (
	"cmp"
	"strconv"
	"time"
)

// ContainerView is a container as clients receive it, without its install script. It is
// also the body of a request that creates or applies one.
type ContainerView struct {
	ContainerSpec
	UID          string `json:"uid" api:"readonly"`          // of this creation; a later one of the same id has another
	ContainerID  string `json:"container_id" api:"readonly"` // the engine's; empty until the engine has created one
	InstallState Phase  `json:"install_state" api:"readonly"`

	ContainerState `api:"readonly"`

	Mount              VolumeMount `json:"mount" api:"readonly"`
	CreatedAt          int64       `json:"created_at" api:"readonly"` // Unix seconds
	UpdatedAt          int64       `json:"updated_at" api:"readonly"` // Unix seconds
	Generation         uint64      `json:"generation" api:"readonly"` // counts the changes of the spec
	ObservedGeneration uint64      `json:"observed_generation" api:"readonly"`
	ResourceVersion    string      `json:"resource_version" api:"readonly"` // changes with each change; for If-Match
	Conditions         []Condition `json:"conditions" api:"readonly"`
}

// VolumeMount is the directory of a container's volume, on the host and in the container.
type VolumeMount struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// MarshalJSON writes every field: those of the spec that are empty too.
func (c ContainerView) MarshalJSON() ([]byte, error) { return marshalWhole(c) }

// Observed reports whether the status is about the current spec: no request is
// still waiting for the daemon.
func (c ContainerView) Observed() bool { return c.ObservedGeneration >= c.Generation }

// ContainerState is the observed state of a container, in an answer and in a list.
type ContainerState struct {
	State        Phase      `json:"state"`
	StateSince   time.Time  `json:"state_since"`
	Deadline     *time.Time `json:"deadline"`  // when the daemon ends the installation or the start; nil: no limit applies
	ExitCode     *int       `json:"exit_code"` // of the last run, or of a failed installation
	OOMKilled    bool       `json:"oom_killed"`
	RestartCount int        `json:"restart_count"`
	NextRetryAt  *time.Time `json:"next_retry_at"`
	StartedAt    *time.Time `json:"started_at"`
	Machine      NullString `json:"machine"` // of a cluster, that it runs on or ran on last; empty: not on a cluster, or not yet
	Message      NullString `json:"message"` // why the container is in its state; empty: nothing to report
}

// ContainerSummary is a container in a list.
type ContainerSummary struct {
	InternalID   string `json:"internal_id"`
	ContainerID  string `json:"container_id"` // empty until the engine has created one
	InstallState Phase  `json:"install_state"`
	Image        string `json:"image"`
	ContainerState
	Power    Power             `json:"power"`
	VolumeID string            `json:"volume_id"`
	Ports    []Port            `json:"ports"`
	Labels   map[string]string `json:"labels"`
}

// MeasuredContainer is a container in a list with its resource usage.
type MeasuredContainer struct {
	ContainerSummary
	Stats *Stats `json:"stats"` // nil: the container does not run, or is not measured yet
}

// Changes are what applying a spec would do.
type Changes struct {
	Changed bool     `json:"changed"`
	Actions []Action `json:"actions"`
}

// Action is one consequence of an apply.
type Action struct {
	Action string `json:"action"` // create, update, recreate, start or stop
	Reason string `json:"reason"` // one sentence
}

// ReinstallRequest replaces parts of the spec before an installation. A nil field keeps the
// current value.
type ReinstallRequest struct {
	Image         *string `json:"image,omitempty"`
	InstallScript *string `json:"install_script,omitempty"`
}

// ShownPhase returns the state that clients see. A requested installation or deletion
// shows at once, before the controller has begun it.
func ShownPhase(o Container) Phase {
	switch {
	case o.Meta.Deleted:
		return Deleting
	case IsInstalling(o) && !o.Status.Phase.Active():
		return Installing
	}
	return o.Status.Phase
}

// stateOf returns the observed state of a container.
func stateOf(o Container) ContainerState {
	st := o.Status
	v := ContainerState{
		State: ShownPhase(o), StateSince: st.Since.UTC(), Deadline: utc(Deadline(o)),
		ExitCode: st.ExitCode, OOMKilled: st.OOMKilled, RestartCount: st.RestartCount,
		NextRetryAt: utc(st.NextRetryAt), StartedAt: utc(st.StartedAt), Machine: NullString(st.Machine), Message: NullString(st.Message),
	}
	if v.State != st.Phase { // requested, and not yet recorded by the controller
		v.StateSince, v.Deadline = o.Meta.UpdatedAt.UTC(), nil
	}
	return v
}

// ViewOf returns a container as clients receive it. The directory is that of its volume.
func ViewOf(o Container, directory string, conditions []Condition) ContainerView {
	return ContainerView{
		ContainerSpec: complete(o), UID: o.Meta.UID, ContainerID: o.Status.ContainerID, InstallState: InstallStateOf(o),
		ContainerState: stateOf(o), Mount: VolumeMount{directory, Home},
		CreatedAt: o.Meta.CreatedAt.Unix(), UpdatedAt: o.Meta.UpdatedAt.Unix(),
		Generation: o.Meta.Generation, ObservedGeneration: o.Status.ObservedGeneration,
		ResourceVersion: strconv.FormatUint(o.Meta.Revision, 10), Conditions: conditions,
	}
}

// Declared returns the spec of a container as a client may declare it again: with its id and
// its defaults, and without its install script.
func Declared(o Container) ContainerSpec { return Shown(complete(o)) }

// complete returns the spec of a container with its id and its defaults.
func complete(o Container) ContainerSpec {
	spec := WithDefaults(o.Spec)
	spec.InternalID = o.Meta.ID
	return spec
}

// SummaryOf returns a container in a list.
func SummaryOf(o Container) ContainerSummary {
	s := ContainerSummary{InternalID: o.Meta.ID, ContainerID: o.Status.ContainerID, InstallState: InstallStateOf(o), Image: o.Spec.Image,
		ContainerState: stateOf(o), Power: o.Spec.Power, VolumeID: o.Spec.VolumeID, Ports: o.Spec.Ports, Labels: o.Spec.Labels}
	if s.Ports == nil {
		s.Ports = []Port{}
	}
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	return s
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// Unready returns why a container that should run does not run, or why one that
// should be installed is not: the reason of a condition, or Installing, Starting,
// Stopping or Pending. It returns "" if nothing is missing: a container that runs,
// that was stopped by request, or whose restart policy ended it.
func Unready(s ContainerSpec, st ContainerStatus) string {
	reasonOf := func(kind, status string) string {
		if c := FindCondition(st.Conditions, kind); c.Status == status {
			return c.Reason
		}
		return ""
	}
	image := reasonOf(ImageAvailable, False)
	if image == "" && FindCondition(st.Conditions, ImageAvailable).Reason == ReasonPullFailed {
		image = ReasonPullFailed
	}
	switch st.Phase {
	case Running, Deleting:
		if s.Power != PowerOn {
			return ""
		}
		return reasonOf(MachineReachable, Unknown)
	case Installing, "":
		return cmp.Or(image, reasonOf(Installed, Unknown), "Installing")
	case Failed:
		return cmp.Or(image, reasonOf(Installed, False), "Failed")
	}
	switch {
	case s.Power != PowerOn:
		return ""
	case st.Phase == Starting:
		return cmp.Or(reasonOf(StartPatternNotMatched, True), "Starting")
	case st.Phase == Stopping:
		return "Stopping"
	}
	reason := cmp.Or(reasonOf(DiskPressure, True), image, reasonOf(ImageCurrent, Unknown), reasonOf(Reconciled, False))
	if reason == "" && st.NextRetryAt == nil && st.ObservedRun == s.RunGeneration {
		return "" // the restart policy ended it
	}
	return cmp.Or(reason, reasonOf(Started, False), "Pending")
}
