package v1

import "time"

// Schedule runs steps on a container at times, or when the container starts or exits. Its id is
// ScheduleID. It ends with its container.
type Schedule = Object[ScheduleSpec, ScheduleStatus]

// ScheduleID returns the id of a schedule. No id of a container has a colon.
func ScheduleID(container, name string) string { return container + ":" + name }

// ScheduleSpec is the desired state of a schedule: what a client requests, what it is answered, and what
// is stored.
type ScheduleSpec struct {
	Name     string         `json:"name" api:"readonly"`
	Cron     string         `json:"cron" api:"required"`    // see ParseCron; or CronStart, CronExit or CronCrash
	Timezone string         `json:"timezone" default:"UTC"` // IANA name
	If       ScheduleIf     `json:"if,omitempty"`           // empty in a request: IfRunning; with CronExit and CronCrash IfAlways
	Missed   ScheduleMissed `json:"missed" default:"skip"`  // what a run is that became due while berth was away
	Enabled  *bool          `json:"enabled" default:"true"` // whether it runs without a request
	Steps    []ScheduleStep `json:"steps" api:"required"`   // one after the other

	Container     string `json:"container,omitempty" api:"-"`
	RunGeneration uint64 `json:"run,omitempty" api:"-"` // counts requests to run it now
	RequestedBy   Actor  `json:"requested_by,omitzero" api:"-"`
}

// Keys returns the container that the schedule is of.
func (s ScheduleSpec) Keys() []string { return []string{s.Container} }

// The values of ScheduleSpec.Cron that are no times: a container is running, a run of it has exited, or has
// failed without a request.
const (
	CronStart = "@start"
	CronExit  = "@exit"
	CronCrash = "@crash"
)

// ScheduleIf determines whether a run begins.
type ScheduleIf string

// The values of ScheduleIf.
const (
	IfRunning ScheduleIf = "running" // only while the container is running; otherwise it is skipped
	IfAlways  ScheduleIf = "always"
)

// ScheduleMissed determines what happens to runs that became due while berth was away.
type ScheduleMissed string

// The values of ScheduleMissed.
const (
	MissedSkip ScheduleMissed = "skip" // they are skipped
	MissedOnce ScheduleMissed = "once" // one run begins for all of them
)

// ScheduleStep is one step of a schedule: exactly one of command, wait, power, backup and wait_for.
type ScheduleStep struct {
	Command  string          `json:"command,omitempty"` // a line of the console
	Wait     Duration        `json:"wait,omitempty"`
	Power    string          `json:"power,omitempty"`    // start, stop, restart or kill
	Backup   *ScheduleBackup `json:"backup,omitempty"`   // of the container's volume; the step ends with the backup
	WaitFor  Phase           `json:"wait_for,omitempty"` // running, exit, ready or failed, once every requested run has begun
	Timeout  Duration        `json:"timeout,omitempty"`  // of wait_for
	Continue bool            `json:"continue,omitempty"` // the run goes on if the step fails
}

// ScheduleBackup is the backup that a step makes.
type ScheduleBackup struct {
	BackupRequest
	Keep int `json:"keep" api:"required"` // completed backups of this schedule, and as many failed ones
}

// RunState is the state of a run of a schedule. Each change of it is an event.
type RunState string

// The states of a run.
const (
	RunRunning   RunState = "running"
	RunCompleted RunState = "completed"
	RunFailed    RunState = "failed"
	RunSkipped   RunState = "skipped"
)

// ScheduleRun is a run of a schedule.
type ScheduleRun struct {
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	State      RunState   `json:"state"`
	Step       int        `json:"step"`    // that was begun last, from 1; 0: none
	Message    string     `json:"message"` // why it failed or was skipped, or why a step failed after which it went on
}

// ScheduleProgress is what a client receives of a schedule's status.
type ScheduleProgress struct {
	NextRun *time.Time   `json:"next_run"` // nil: it is not enabled, or has no times
	LastRun *ScheduleRun `json:"last_run"` // nil: none
	Runs    uint64       `json:"runs"`     // that have begun
}

// ScheduleStatus is the observed state of a schedule.
type ScheduleStatus struct {
	ScheduleProgress

	CronState             // of the spec that NextRun was computed from; no expression: it was not enabled
	Counted     uint64    `json:"counted,omitempty"`     // starts, exits or crashes that are over
	ObservedRun uint64    `json:"ran,omitempty"`         // the last requested run that was carried out
	Skipped     uint64    `json:"skipped,omitempty"`     // runs
	Failures    int       `json:"failures,omitempty"`    // of the last runs, without one that completed since
	CompletedAt time.Time `json:"completed_at,omitzero"` // when the last run completed
	Actor       Actor     `json:"actor,omitzero"`        // of the last run

	// Of a run that has not finished.
	Steps   []ScheduleStep `json:"steps,omitempty"`   // as they were when it began
	Install uint64         `json:"install,omitempty"` // the installation of the container when it began
	Until   *time.Time     `json:"until,omitempty"`   // the end of the step's wait; nil: it is over
	Backup  string         `json:"backup,omitempty"`  // that the step has requested; empty: it is over
}

// Running reports whether a run has not finished.
func (s ScheduleStatus) Running() bool { return s.LastRun != nil && s.LastRun.State == RunRunning }

// ScheduleView is a schedule as clients receive it, and the body that sets one.
type ScheduleView struct {
	ScheduleSpec
	Status ScheduleProgress `json:"status" api:"readonly"`
}

// MarshalJSON writes every field.
func (s ScheduleView) MarshalJSON() ([]byte, error) { return marshalWhole(s) }

// ViewOfSchedule returns a schedule as clients receive it.
func ViewOfSchedule(o Schedule) ScheduleView {
	return ScheduleView{ScheduleSpec: o.Spec, Status: o.Status.ScheduleProgress}
}

// Transition emits the transitions of the runs of a schedule: one was skipped while another one goes, one has
// begun, ended or was skipped.
func (s *ScheduleStatus) Transition(from Schedule, emit func(Event) Event) {
	e := Event{Event: EventSchedule, Container: from.Spec.Container, Schedule: from.Spec.Name, Actor: s.Actor}
	before, now := from.Status.LastRun, s.LastRun
	changed := now != nil && (before == nil || before.State != now.State || !before.StartedAt.Equal(now.StartedAt))
	if s.Skipped != from.Status.Skipped && (!changed || now.State != RunSkipped) {
		e.Data = string(RunSkipped)
		emit(e)
	}
	if changed {
		e.Data = string(now.State)
		emit(e)
	}
}

// ScheduleActor returns the actor of what a step of a schedule causes.
func ScheduleActor(name string) Actor { return Actor{Via: ViaSchedule, Name: name} }
