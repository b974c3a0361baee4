package container

import (
	"context"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// execution executes one step of a container.
type execution struct {
	r *Reconciler
	c v1.Container // as it was loaded
	o Observed     // when the step was planned
}

// executeWithPermit executes a step. An expensive step needs a permit; without one
// the container is queued for it. A container that was created and has to run is
// started with the same permit.
func (s execution) executeWithPermit(ctx context.Context, next Step) (controller.Result, error) {
	if !next.Do.expensive() {
		return s.execute(ctx, next)
	}
	if !s.r.Semaphore.acquire(s.c.Meta.ID, next.Do.starts()) {
		return controller.Result{Waiting: true}, nil // the semaphore names the key when a permit is reserved for it
	}
	defer s.r.Semaphore.release()
	res, err := s.execute(ctx, next)
	if err != nil || !res.Requeue || !next.Do.creates() {
		return res, err
	}
	s, next, err = s.r.next(ctx, s.c.Meta.ID)
	if err != nil || !next.Do.starts() {
		return controller.RequeueNow(), err
	}
	return s.execute(ctx, next)
}

// execute executes one step and counts its failure.
func (s execution) execute(ctx context.Context, next Step) (controller.Result, error) {
	res, err := s.dispatch(ctx, next)
	if err == nil || ctx.Err() != nil {
		return res, err
	}
	s.r.Metrics.StepFailed(next.Do.String())
	return res, stepError{s, next.Do, err}
}

func (s execution) dispatch(ctx context.Context, next Step) (controller.Result, error) {
	switch next.Do {
	case Rest:
		s.r.Pulls.Forget(s.c.Meta.ID) // a result that it did not receive is not that of its next start
		return controller.Result{}, s.markObserved()
	case AwaitMatch:
		if next.RequeueAt.IsZero() {
			return controller.Result{}, s.markObserved()
		}
		return requeueAfter(next.RequeueAt.Sub(s.o.Now)), s.markObserved()
	case AwaitInstall, AwaitStop, AwaitRetry, AwaitSpace:
		return requeueAfter(next.RequeueAt.Sub(s.o.Now)), s.markObserved()
	case AwaitEngine: // neither a success nor a failure of the container
		return waitFor(next.RequeueAt.Sub(s.o.Now)), nil
	case AwaitOutput: // the phase is still that of the exited run, so the spec must not count as observed
		return requeueAfter(next.RequeueAt.Sub(s.o.Now)), nil
	case RecordInstalling, PullImage, CreateInstaller, StartInstaller, KillInstaller, FinishInstall, RemoveInstaller:
		return installStep{s}.execute(ctx, next.Do)
	case RecordStopping, SendStop, KillServer, RecordExit, RecordOOM:
		return exitStep{s}.execute(ctx, next.Do)
	case RecordInstallSlow, RecordStartSlow, RecordStartTimeout:
		return controller.RequeueNow(), slowStep{s}.execute(next.Do)
	case RefreshImage:
		return refreshImage(ctx, s)
	case RecordPressure:
		return controller.RequeueNow(), s.recordPressure()
	case RecordVolume:
		return controller.RequeueNow(), recordVolumeReady(s)
	case RecordDeleting:
		return controller.RequeueNow(), s.record(setPhase(s.c.Spec, v1.Deleting))
	case Forget:
		return controller.Result{}, s.forget(ctx)
	}
	return serverStep{s}.execute(ctx, next.Do)
}

// markObserved records that the newest spec was observed and that no step fails.
func (s execution) markObserved() error {
	failed := v1.FindCondition(s.c.Status.Conditions, v1.Reconciled)
	over := failed.Status == v1.False
	if s.c.Status.ObservedGeneration == s.c.Meta.Generation && !over {
		return nil
	}
	return s.record(func(st *v1.ContainerStatus, _ time.Time) {
		if !over || s.c.Status.Message != failed.Message {
			st.Message = s.c.Status.Message
		}
	})
}

// forget purges a container that has nothing left on the host. The console is
// forgotten before and after the purge, so that listeners who subscribed in between
// learn that it is gone too.
func (s execution) forget(ctx context.Context) error {
	s.r.Pulls.Forget(s.c.Meta.ID)
	if err := s.forgetConsole(ctx); err != nil {
		return err
	}
	if err := s.r.Store.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, s.c.Meta.ID) }); err != nil {
		return err
	}
	return s.forgetConsole(ctx)
}

func (s execution) forgetConsole(ctx context.Context) error {
	if err := s.r.Console.Forget(ctx, s.c.Meta.ID); err != nil {
		return fmt.Errorf("container %s: %w", s.c.Meta.ID, err)
	}
	return nil
}
