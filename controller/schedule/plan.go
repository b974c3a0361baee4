package schedule

import (
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller/jobs"
)

// Observed is what Plan knows beside the records of a schedule.
type Observed struct {
	Now, Began time.Time    // Began is when berth was started, or earlier if the clock has jumped since
	Container  v1.Container // that the schedule is of
	Backup     v1.JobState  // of the backup that the step waits for; empty: there is none
	Message    string       // of that backup
	Line       Job          // that the step has sent
}

// Job is the job that sends a line to a console.
type Job = jobs.Job[struct{}]

// Action is what Plan has decided.
type Action int

// The actions.
const (
	Rest   Action = iota // until Decision.At, or until something changes
	Follow               // record the next due time
	Skip                 // record that a run is skipped
	Begin                // record that a run begins
	Take                 // record and take the next step
	Fail                 // record that the step failed
	Finish               // record that the run has completed
	End                  // record that the run has failed
)

// Decision is what is to be done for a schedule.
type Decision struct {
	Action  Action
	Message string    // for the run
	At      time.Time // when to plan again; zero: when something changes
	Due     Due
}

// Due is when a schedule runs next, as the status records it.
type Due struct {
	Next    time.Time // zero: no time is known
	Handled time.Time
	Counted uint64
}

// leastPause is the time between two runs that the container causes.
const leastPause = time.Minute

// Plan returns what is to be done for a schedule. It reads nothing and changes nothing.
func Plan(s v1.Schedule, o Observed) Decision {
	due, now, followed := dueOf(s, o)
	d := Decision{Due: due, At: due.Next}
	if !followed {
		d.Action = Follow
		return d
	}
	if now != "" || s.Spec.RunGeneration != s.Status.ObservedRun {
		d.Due = due.after(s, o)
		d.Action, d.Message = begin(s, o, now)
		return d
	}
	if !s.Status.Running() {
		return d
	}
	run := step(s.Status, o)
	run.Due = due
	if run.At.IsZero() || !due.Next.IsZero() && due.Next.Before(run.At) {
		run.At = due.Next
	}
	return run
}

// The kinds of runs that are due now; empty: none is.
const (
	dueRun    = "due"
	missedRun = "missed" // it became due while berth was away
)

// dueOf returns what is due next, whether something is due now, and whether the status follows the spec.
func dueOf(s v1.Schedule, o Observed) (d Due, now string, followed bool) {
	st, counted := s.Status, count(s.Spec.Cron, o.Container.Status)
	d = Due{Handled: st.Handled, Counted: st.Counted}
	if st.NextRun != nil {
		d.Next = *st.NextRun
	}
	switch {
	case !*s.Spec.Enabled:
		return Due{}, "", st.Cron == ""
	case !st.Follows(s.Spec.Cron, s.Spec.Timezone, o.Now):
		return Due{v1.NextCron(s.Spec.Cron, s.Spec.Timezone, o.Now), o.Now, counted}, "", false
	case counted != st.Counted:
		last := st.LastRun
		if last != nil && o.Now.Sub(last.StartedAt).Abs() < leastPause && !st.Running() {
			return Due{Counted: counted, Handled: st.Handled}, "", false
		}
		return d, dueRun, true
	case !d.Next.IsZero() && d.Next.Before(o.Began):
		return d, missedRun, true
	case !d.Next.IsZero() && !d.Next.After(o.Now):
		return d, dueRun, true
	}
	return d, "", true
}

// after returns what is due next once everything that is due now is over.
func (d Due) after(s v1.Schedule, o Observed) Due {
	if !*s.Spec.Enabled || d.Next.After(o.Now) { // a run that was requested
		return Due{d.Next, d.Handled, count(s.Spec.Cron, o.Container.Status)}
	}
	return Due{v1.NextCron(s.Spec.Cron, s.Spec.Timezone, o.Now), o.Now, count(s.Spec.Cron, o.Container.Status)}
}

// count returns how often a container has done what a schedule waits for.
func count(cron string, st v1.ContainerStatus) uint64 {
	switch cron {
	case v1.CronStart:
		return st.Totals.Runs
	case v1.CronExit:
		return st.Totals.Exits
	case v1.CronCrash:
		return st.Totals.Crashes
	}
	return 0
}

// begin returns whether a run that is due begins, and otherwise why it is skipped.
func begin(s v1.Schedule, o Observed, due string) (Action, string) {
	requested := s.Spec.RunGeneration != s.Status.ObservedRun
	switch phase := o.Container.Status.Phase; {
	case s.Status.Running():
		return Skip, ""
	case due == missedRun && s.Spec.Missed == v1.MissedSkip && !requested:
		return Skip, "berth was away when it was due"
	case s.Spec.If == v1.IfRunning && phase != v1.Running:
		return Skip, "the container is not running"
	}
	return Begin, ""
}

// step returns what is to be done for a run that has not finished.
func step(st v1.ScheduleStatus, o Observed) Decision {
	run := *st.LastRun
	if o.Container.Spec.InstallGeneration != st.Install {
		return Decision{Action: End, Message: "the container was reinstalled"}
	}
	if run.Step > 0 {
		if d, over := current(st.Steps[run.Step-1], st, o); !over {
			return d
		}
	}
	if run.Step == len(st.Steps) {
		return Decision{Action: Finish}
	}
	return Decision{Action: Take}
}

// current returns whether the step that was begun is over, and otherwise what is to be done.
func current(s v1.ScheduleStep, st v1.ScheduleStatus, o Observed) (d Decision, over bool) {
	switch {
	case st.Until != nil:
		// A clock that was set back by more than the wait ends it.
		elapsed := !st.Until.After(o.Now) || st.Until.After(o.Now.Add(time.Duration(s.Wait+s.Timeout)))
		if elapsed && s.WaitFor != "" && !reached(o.Container, s.WaitFor) {
			return Decision{Action: Fail, Message: fmt.Sprintf("the container was not in the state %s within %s", s.WaitFor, s.Timeout)}, false
		}
		return Decision{At: *st.Until}, elapsed || s.WaitFor != "" && reached(o.Container, s.WaitFor)
	case st.Backup != "":
		return awaitBackup(o)
	case s.Command == "" || o.Line.State == jobs.None:
		return d, true
	case o.Line.State == jobs.Running:
		return d, false
	case o.Line.Err != nil:
		return Decision{Action: Fail, Message: "the command was not sent: " + causeOf(o.Line.Err)}, false
	}
	return d, true
}

func awaitBackup(o Observed) (d Decision, over bool) {
	switch o.Backup {
	case v1.JobCompleted:
		return d, true
	case v1.JobFailed:
		return Decision{Action: Fail, Message: "the backup failed: " + o.Message}, false
	case v1.JobDeleting, "":
		return Decision{Action: Fail, Message: "the backup was deleted"}, false
	}
	return d, false
}

// reached reports whether a container is in a state, and no requested run has yet to begin.
func reached(c v1.Container, state v1.Phase) bool {
	pending := c.Spec.Power == v1.PowerOn && c.Spec.RunGeneration != c.Status.ObservedRun
	return c.Status.Phase == state && !pending
}
