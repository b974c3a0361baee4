package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/jobs"
	"berth/store"
)

// writer is a store.Writer whose updates record a step too.
type writer struct {
	*store.Request
	record func(*store.Tx) error
}

// Update is Store.Update.
func (w writer) Update(fn func(*store.Tx) error) error { return w.Request.Update(w.with(fn)) }

// MustUpdate is Store.MustUpdate.
func (w writer) MustUpdate(fn func(*store.Tx) error) error { return w.Request.MustUpdate(w.with(fn)) }

func (w writer) with(fn func(*store.Tx) error) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		if err := w.record(tx); err != nil {
			return err
		}
		return fn(tx)
	}
}

// take records the next step of a run, and takes it. What it requests is in the same commit.
func (r *reconciler) take(s v1.Schedule, o Observed) (controller.Result, error) {
	n := s.Status.LastRun.Step + 1
	step, container := s.Status.Steps[n-1], s.Spec.Container
	audit := v1.Audit{Action: "container." + step.Power, Object: container, Container: container}
	w := writer{record: r.record(s, func(_ *store.Tx, st *v1.ScheduleStatus) { begun(st, n) })}
	switch {
	case step.Command != "":
		if o.Line.State == jobs.Ended { // of the step before
			r.Lines.Forget(s.Meta.ID)
		}
		audit.Action = "container.command"
		return r.sendLine(s, step.Command, func() error { return r.request(s, audit).Update(w.record) })
	case step.Wait != 0 || step.WaitFor != "":
		return controller.Result{}, r.Store.Update(r.record(s, func(tx *store.Tx, st *v1.ScheduleStatus) {
			begun(st, n)
			until := tx.Now().Add(time.Duration(step.Wait + step.Timeout))
			st.Until = &until
		}))
	case step.Power != "":
		w.Request = r.request(s, audit)
		return controller.Result{}, r.refused(s, n, r.Power(w, container, step.Power))
	}
	id := uuid.NewString()
	audit.Action, audit.Object, audit.Volume = "backup.create", id, o.Container.Spec.VolumeID
	w = writer{r.request(s, audit), r.record(s, func(_ *store.Tx, st *v1.ScheduleStatus) { begun(st, n); st.Backup = id })}
	spec := v1.BackupSpec{VolumeID: audit.Volume, BackupRequest: step.Backup.BackupRequest, Schedule: s.Meta.ID,
		Maker: v1.Maker{UID: o.Container.Meta.UID}}
	return controller.Result{}, r.refused(s, n, r.Backup(w, id, spec))
}

// begun records that step n is the one that was begun last.
func begun(st *v1.ScheduleStatus, n int) {
	run := *st.LastRun
	run.Step = n
	st.LastRun, st.Until, st.Backup = &run, nil, ""
}

// request returns a request of a schedule, which gets an entry in the audit log.
func (r *reconciler) request(s v1.Schedule, a v1.Audit) *store.Request {
	return store.NewRequest(r.Store, v1.ScheduleActor(s.Spec.Name), a)
}

// sendLine sends a line as a job, once record has recorded it.
func (r *reconciler) sendLine(s v1.Schedule, line string, record func() error) (controller.Result, error) {
	started, err := r.Lines.Start(jobs.Request[struct{}]{ID: s.Meta.ID, Key: s.Spec.Container, Record: record,
		Work: func(ctx context.Context, _ func(struct{})) error { return r.send(ctx, s.Spec.Container, line) }})
	if err != nil || started {
		return controller.Result{}, err
	}
	return controller.Result{Waiting: true, RequeueAfter: jobs.AskAgain}, nil
}

// send sends a line. It tries again while the console is not ready: then nothing was sent.
func (r *reconciler) send(ctx context.Context, container, line string) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	for {
		err := r.Send(ctx, container, line+"\n")
		if !errors.Is(err, v1.ErrNotRunning) || !controller.Sleep(ctx, sendDelay) {
			return err
		}
	}
}

// refused records that step n failed if its request was refused.
func (r *reconciler) refused(s v1.Schedule, n int, err error) error {
	var refusal *v1.Error
	if errors.As(err, &refusal) {
		return r.fail(s, n, refusal.Message)
	}
	return err
}

// fail records that step n failed, which ends the run unless the step has continue.
func (r *reconciler) fail(s v1.Schedule, n int, message string) error {
	message = fmt.Sprintf("step %d: %s", n, message)
	goesOn := s.Status.Steps[n-1].Continue
	err := r.Store.Update(r.record(s, func(tx *store.Tx, st *v1.ScheduleStatus) {
		begun(st, n)
		st.LastRun.Message = v1.MessageText(message)
		if !goesOn {
			finish(st, tx.Now(), v1.RunFailed, message)
		}
	}))
	r.Lines.Forget(s.Meta.ID)
	if err == nil && !goesOn {
		r.ran(s, v1.RunFailed, message)
	}
	return err
}
