package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/backup"
	"berth/controller/jobs"
	"berth/store"
)

// Options are what the controller needs.
type Options struct {
	Store *store.Store
	Began time.Time // when berth was started
	Power func(w store.Writer, container, verb string) error
	// Backup requests a backup with an id.
	Backup func(w store.Writer, id string, spec v1.BackupSpec) error
	// Send sends a line to a console. If its error is v1.ErrNotRunning, it was not sent.
	Send    func(ctx context.Context, container, line string) error
	Lines   *jobs.Jobs[struct{}] // NewLines
	Resync  time.Duration
	BackOff controller.BackOff
	Metrics *Metrics
	Loops   *controller.Metrics
	Log     *slog.Logger
}

const (
	workers     = 2
	maxLines    = 16 // that are sent at once: a container that does not read its input holds one
	maxSteps    = 40 // of one reconcile: each step of a run needs two at most
	sendTimeout = 10 * time.Second
	sendDelay   = 250 * time.Millisecond // between two attempts while the console is not ready
)

// NewLines returns the jobs that send lines, one of each container at once.
func NewLines(log *slog.Logger) *jobs.Jobs[struct{}] {
	return jobs.New[struct{}](jobs.Options{Name: "line of a schedule", Limit: func() int { return maxLines }, Log: log})
}

type reconciler struct{ Options }

// New returns the controller of schedules.
func New(o Options) *controller.Loop {
	r := &reconciler{o}
	return &controller.Loop{
		Name: "schedule", Reconciler: r, Workers: workers, BackOff: o.BackOff, Log: o.Log, Metrics: o.Loops,
		DesiredState: []controller.Source{store.Schedules.Source(o.Store, store.SpecChanged, store.Purged)},
		Signals: []controller.Source{r.containersChanged, r.backupsChanged, o.Lines.Source,
			controller.Every(o.Resync, store.Schedules.Lister(o.Store))},
	}
}

// containersChanged is a source of the schedules whose containers change.
func (r *reconciler) containersChanged(ctx context.Context, notify func(string)) error {
	return store.Containers.Source(r.Store, store.SpecChanged, store.StatusChanged)(ctx, func(id string) {
		for _, id := range store.Schedules.IDsBy(r.Store.Read(), id) {
			notify(id)
		}
	})
}

// backupsChanged is a source of the schedules whose backups end.
func (r *reconciler) backupsChanged(ctx context.Context, notify func(string)) error {
	return store.Backups.Source(r.Store, store.SpecChanged, store.StatusChanged)(ctx, func(id string) {
		if b, err := store.Backups.Get(r.Store.Read(), id); err == nil && b.Spec.Schedule != "" { // the resync makes up for an error
			notify(b.Spec.Schedule)
		}
	})
}

// Reconcile takes the steps of the schedule with this id until one has to wait.
func (r *reconciler) Reconcile(_ context.Context, id string) (controller.Result, error) {
	for range maxSteps {
		s, o, err := r.observe(id)
		if errors.Is(err, store.ErrNotFound) {
			r.Lines.Cancel(id)
			r.Lines.Forget(id)
			return controller.Result{}, nil
		}
		if err != nil {
			return controller.Result{}, err
		}
		d := Plan(s, o)
		if d.Action == Rest {
			return untilNext(d.At, o.Now), nil
		}
		res, err := r.act(s, o, d)
		if err != nil || res != (controller.Result{}) {
			return res, err
		}
	}
	return controller.Result{}, fmt.Errorf("schedule %s: no progress in %d steps", id, maxSteps)
}

func untilNext(at, now time.Time) controller.Result {
	if at.IsZero() {
		return controller.Result{}
	}
	return controller.Result{RequeueAfter: max(at.Sub(now), time.Millisecond)}
}

// observe loads a schedule, and what Plan needs to know beside it.
func (r *reconciler) observe(id string) (s v1.Schedule, o Observed, err error) {
	tx := r.Store.Read()
	if s, err = store.Schedules.Get(tx, id); err != nil {
		return s, o, err
	}
	if o.Container, err = store.Containers.Get(tx, s.Spec.Container); err != nil {
		return s, o, err
	}
	if s.Status.Backup != "" {
		b, err := store.Backups.Get(tx, s.Status.Backup)
		if err == nil {
			o.Backup, o.Message = v1.BackupStateOf(b), b.Status.Message
		} else if !errors.Is(err, store.ErrNotFound) {
			return s, o, err
		}
	}
	o.Now, o.Began = tx.Now(), tx.Now().Add(-time.Since(r.Began))
	if r.Began.Before(o.Began) { // the clock was put forward since
		o.Began = r.Began
	}
	o.Line = r.Lines.Get(id)
	return s, o, nil
}

// act carries out a decision.
func (r *reconciler) act(s v1.Schedule, o Observed, d Decision) (controller.Result, error) {
	var result v1.RunState
	var change func(st *v1.ScheduleStatus, now time.Time)
	switch d.Action {
	case Take:
		return r.take(s, o)
	case Fail:
		return controller.Result{}, r.fail(s, s.Status.LastRun.Step, d.Message)
	case Skip:
		result = v1.RunSkipped
		change = func(st *v1.ScheduleStatus, now time.Time) { skip(st, now, d.Message) }
	case Begin:
		r.Lines.Forget(s.Meta.ID)
		change = func(st *v1.ScheduleStatus, now time.Time) {
			st.Runs++
			st.LastRun = &v1.ScheduleRun{StartedAt: now, State: v1.RunRunning}
			st.Steps, st.Install = s.Spec.Steps, o.Container.Spec.InstallGeneration
		}
	case Finish, End:
		result = v1.RunCompleted
		if d.Action == End {
			result = v1.RunFailed
		}
		change = func(st *v1.ScheduleStatus, now time.Time) { finish(st, now, result, d.Message) }
	}
	err := r.Store.Update(r.record(s, func(tx *store.Tx, st *v1.ScheduleStatus) {
		st.Actor = v1.ScheduleActor(s.Spec.Name)
		if change != nil {
			change(st, tx.Now())
		}
		if d.Action == Follow || d.Action == Skip || d.Action == Begin {
			follow(st, s.Spec, d.Due)
		}
	}))
	if err == nil && result != "" {
		r.ran(s, result, d.Message)
	}
	return controller.Result{}, err
}

// follow records that everything up to now is over.
func follow(st *v1.ScheduleStatus, spec v1.ScheduleSpec, d Due) {
	st.CronState = v1.CronState{Handled: d.Handled}
	if *spec.Enabled {
		st.Cron, st.Timezone = spec.Cron, spec.Timezone
	}
	st.Counted, st.ObservedRun, st.NextRun = d.Counted, spec.RunGeneration, nil
	if !d.Next.IsZero() {
		st.NextRun = &d.Next
	}
}

func skip(st *v1.ScheduleStatus, now time.Time, message string) {
	st.Skipped++
	if !st.Running() {
		st.LastRun = &v1.ScheduleRun{StartedAt: now, FinishedAt: &now, State: v1.RunSkipped, Message: message}
	}
}

func finish(st *v1.ScheduleStatus, now time.Time, state v1.RunState, message string) {
	run := *st.LastRun
	run.State, run.FinishedAt = state, &now
	if message != "" {
		run.Message = v1.MessageText(message)
	}
	st.LastRun, st.Steps, st.Until, st.Backup = &run, nil, nil, ""
	if state == v1.RunCompleted {
		st.Failures, st.CompletedAt = 0, now
	} else {
		st.Failures++
	}
}

var errChanged = errors.New("the schedule was changed meanwhile; berth retries")

// record returns the change of the status of a schedule, which must be as it was planned for. If a backup of the
// schedule has ended, it prunes those before.
func (r *reconciler) record(s v1.Schedule, change func(*store.Tx, *v1.ScheduleStatus)) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		now, err := store.Schedules.Get(tx, s.Meta.ID)
		if err == nil && now.Meta.Revision != s.Meta.Revision {
			err = errChanged
		}
		if err != nil {
			return err
		}
		before := s.Status.Backup
		err = store.Schedules.SetStatus(tx, s.Meta.ID, func(st *v1.ScheduleStatus) {
			change(tx, st)
			now.Status = *st
		})
		if err != nil || before == "" || now.Status.Backup == before {
			return err
		}
		b, err := store.Backups.Get(tx, before)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		step := s.Status.Steps[s.Status.LastRun.Step-1]
		return errors.Join(err, backup.PruneSchedule(tx, b.Spec.VolumeID, s.Meta.ID, step.Backup.Keep))
	}
}

// ran counts a run that has ended or was skipped, and logs why it did not complete.
func (r *reconciler) ran(s v1.Schedule, state v1.RunState, message string) {
	r.Metrics.observe(state)
	if state == v1.RunFailed {
		r.Log.Warn("a run of a schedule failed", "container", s.Spec.Container, "schedule", s.Spec.Name, "reason", message)
	}
}

// causeOf returns the text of an error for clients.
func causeOf(err error) string {
	var known *v1.Error
	if errors.As(err, &known) {
		return known.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the console did not take it in time"
	}
	return "it is not known whether the console has taken it"
}
