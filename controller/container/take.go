package container

import (
	"context"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// step is one step being taken: the container as it was loaded, and as it was seen.
type step struct {
	*Reconciler
	c v1.Container
	o Observed
}

// takeWithPermit takes a step that needs a slot only when there is one. What was made
// and is to run is started with the same slot.
func (s step) takeWithPermit(ctx context.Context, next Step) (controller.Result, error) {
	if !next.Do.expensive() {
		return s.take(ctx, next)
	}
	if !s.Semaphore.acquire(s.c.Meta.ID, next.Do) {
		return queued, nil // until it is named
	}
	defer s.Semaphore.release()
	res, err := s.take(ctx, next)
	if err != nil || !res.Requeue || !next.Do.creates() {
		return res, err
	}
	s, next, err = s.next(ctx, s.c.Meta.ID)
	if err != nil || !next.Do.starts() {
		return requeue, err
	}
	return s.take(ctx, next)
}

// acquire acts on one step and records what came of it.
func (s step) take(ctx context.Context, next Step) (controller.Result, error) {
	res, err := s.act(ctx, next)
	if err == nil || ctx.Err() != nil {
		return res, err
	}
	s.Metrics.StepFailed(next.Do.String())
	return res, stepError{s, next.Do, err}
}

func (s step) act(ctx context.Context, next Step) (controller.Result, error) {
	switch next.Do {
	case Rest, AwaitMatch:
		return settled, s.markObserved()
	case AwaitInstall, AwaitStop, AwaitRetry, AwaitSpace:
		return requeueAfter(next.RequeueAt.Sub(s.o.Now)), s.markObserved()
	case AwaitEngine: // neither a success nor a failure of the container's
		return waitFor(next.RequeueAt.Sub(s.o.Now)), nil
	case AwaitOutput: // the phase is that of a run that is over: it must not pass for what the spec came to
		return requeueAfter(next.RequeueAt.Sub(s.o.Now)), nil
	case RecordInstalling, PullImage, CreateInstaller, StartInstaller, KillInstaller, FinishInstall, RemoveInstaller:
		return installStep{s}.take(ctx, next.Do)
	case RecordStopping, SendStop, KillServer, RecordExit, RecordOOM:
		return exitStep{s}.take(ctx, next.Do)
	case RecordPressure:
		return requeue, s.recordPressure()
	case RecordDeleting:
		return requeue, s.record(phase(v1.Deleting))
	case Forget:
		return settled, s.forget(ctx)
	}
	return serverStep{s}.take(ctx, next.Do)
}

// markObserved records that the newest spec was observed, and that no step fails.
func (s step) markObserved() error {
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

// forget is the end of a container: nothing of it is left on the host. Who began
// to listen to its console before it was purged is told that it is gone, too.
func (s step) forget(ctx context.Context) error {
	s.Pulls.Forget(s.c.Meta.ID)
	if err := s.forgetConsole(ctx); err != nil {
		return err
	}
	if err := s.Store.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, s.c.Meta.ID) }); err != nil {
		return err
	}
	return s.forgetConsole(ctx)
}

func (s step) forgetConsole(ctx context.Context) error {
	if err := s.Console.Forget(ctx, s.c.Meta.ID); err != nil {
		return fmt.Errorf("container %s: %w", s.c.Meta.ID, err)
	}
	return nil
}
