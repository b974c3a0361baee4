package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// Mounts checks and pins the sources of a container's mounts while the engine
// creates or starts it. See package hostmount.
type Mounts interface {
	Pin(ctx context.Context, n runtime.Name, mounts []runtime.Mount) (pinned []runtime.Mount, release func(), err error)
}

// Console follows the output of containers. See package console.
type Console interface {
	Follow(t runtime.Target)
	Matched(id, containerID string, startedAt time.Time) bool
	OutputComplete(t runtime.Target) bool
	Drain(ctx context.Context, t runtime.Target) error
	Input(ctx context.Context, id string, data []byte) error
	Forget(ctx context.Context, id string) error
}

// CrashBackOff is the backoff of a container whose runs keep exiting.
type CrashBackOff struct {
	controller.BackOff
	ResetAfter time.Duration // after a run of this duration crashes are counted from 0
}

// Reconciler drives containers toward their specs.
type Reconciler struct {
	Options
	Store   *store.Store
	Engine  Engine
	Console Console
	Roots   *Roots
	Mounts  Mounts
	Volumes HostVolumes
	Auth    func(registry, image string) runtime.Auth // credentials of docker.registries for an image; zero if it is of another one
	Metrics *controller.Metrics
	Log     *slog.Logger

	// What takes long.
	Pulls        *Puller
	Preparations *Preparations
	Semaphore    *Semaphore

	memory
}

// Options are the constant settings of a Reconciler.
type Options struct {
	Crash       CrashBackOff
	Warn        Warnings
	OrphanGrace time.Duration    // of a container without a record
	BootID      string           // of the host
	Now         func() time.Time // the host's clock
}

// HostVolumes are the volumes as a Reconciler uses them.
type HostVolumes struct {
	Mount func(volumeID string) runtime.Mount // of the directory of a volume on the host, without a target

	// Configure sets the values of configuration files in a volume.
	Configure func(ctx context.Context, volumeID string, files []v1.ConfigFile, env map[string]string) []error

	// Own gives a volume and everything in it to an account. It returns why the account cannot write all
	// of it; empty if it can.
	Own func(ctx context.Context, volumeID string, to Accounts) (reason string, err error)
}

// memory is what a Reconciler knows and does not store: after a restart it is found again.
type memory struct {
	instances  instances
	timers     timers
	hostStarts atomic.Value // the status of the node's condition ContainersStart that was stored last; nil: none since the start
}

// task is one step of one container.
type task struct {
	*Reconciler
	c    v1.Container // as it was loaded
	o    Observed     // when the step was planned
	step Step
}

// maxSteps limits the steps of one Reconcile. A container that needs more makes no progress.
const maxSteps = 30

// Reconcile takes the steps of the container with this internal_id until one waits. What a
// step is about to begin is recorded before it does, and the next one begins with what is stored and observed then.
// One permit serves all of them.
func (r *Reconciler) Reconcile(ctx context.Context, id string) (res controller.Result, err error) {
	permit, queued := false, false
	defer func() {
		if permit {
			r.Semaphore.release()
		}
		if !queued { // what waits for a pull or another container must not keep a permit from others
			r.Semaphore.leave(id)
		}
	}()
	var last *task
	for range maxSteps {
		t, err := r.observe(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return r.reconcileOrphan(ctx, id)
		}
		if err != nil {
			return controller.Result{}, err
		}
		t.step = Plan(t.c, t.o)
		last = t
		if t.step.expensive && !permit {
			if permit = r.Semaphore.acquire(id, t.step.starts); !permit {
				queued = true
				return controller.Result{Waiting: true}, nil // the semaphore names the id when a permit is free
			}
		}
		res, err := t.step.run(t, ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			r.Metrics.StepFailures.WithLabelValues(t.step.Name).Inc()
			if errors.Is(err, runtime.ErrNoRoom) {
				return waitFor(roomWait), t.recordFailure(reasonNoRoom, err.Error(), t.Now().Add(roomWait))
			}
			return res, stepError{t, err}
		case err != nil, t.step.ends, res != (controller.Result{}):
			return res, err
		}
	}
	return controller.Result{}, stepError{last, fmt.Errorf("container %s: no progress in %d steps", id, maxSteps)}
}

// stepError is the error of a step.
type stepError struct {
	*task
	err error
}

func (e stepError) Error() string { return e.err.Error() }
func (e stepError) Unwrap() error { return e.err }

// reason returns the reason of the condition Reconciled: the cause if an operator can
// remove it, else the step.
func (e stepError) reason() string {
	switch {
	case errors.Is(e.err, runtime.ErrMountMissing):
		return reasonVolumeMissing
	case errors.Is(e.err, runtime.ErrHost):
		return v1.ReasonHostFault
	}
	return e.step.failureReason()
}

// Failed records a failed step in the container's message and condition, with the
// time of the retry. It is the Failed of a controller.Loop. An error that is not a
// step's, such as a failed observation, is not recorded.
func (r *Reconciler) Failed(id string, err error, retryAt time.Time) {
	var failed stepError
	if !errors.As(err, &failed) {
		return
	}
	if retryAt.IsZero() { // at the next change or resync
		retryAt = time.Now().Add(r.Crash.Max)
	}
	if err := failed.recordFailure(failed.reason(), failed.err.Error(), retryAt); err != nil && !errors.Is(err, store.ErrNotFound) {
		r.Log.Error("could not save the last error of a container", "container", id, "err", err, "last_error", failed.err)
	}
}

// removeOrphan is the step in the metrics.
const removeOrphan = "remove orphan"

// reconcileOrphan observes an id that the store does not know. A container of this store
// without a record, such as one that a hanging engine created long after the call, is logged
// first and removed after a grace period. One whose revision the store does not remember is
// kept: the store is an older copy.
func (r *Reconciler) reconcileOrphan(ctx context.Context, id string) (controller.Result, error) {
	r.Preparations.Cancel(id)
	r.Preparations.Forget(id) // one that ran when the container was purged has ended, or names the id when it has
	left, found := time.Duration(0), false
	for _, n := range []runtime.Name{serverName(id), installerName(id)} {
		s, err := r.inspect(ctx, n)
		if err != nil {
			return controller.Result{}, err
		}
		if !exists(s) {
			continue
		}
		found = true
		waited := r.timers.since(id, orphanTimer, time.Time{}, true)
		if !r.Store.Incarnations.Remembers(s.Incarnation, s.Revision) {
			if waited > 0 { // it was logged
				continue
			}
			r.Log.Error("a container is newer than the store, which is an older copy: it is kept; remove it by hand if it is not needed",
				"container", id, "role", n.Role, "container_id", s.ContainerID)
			continue
		}
		if waited == 0 {
			r.Log.Warn("a container has no record and is removed after a grace period", "container", id, "role", n.Role, "grace", r.OrphanGrace)
		}
		if left = r.OrphanGrace - waited; left > 0 {
			continue
		}
		if err := r.removeOrphan(ctx, n, s); err != nil {
			r.Metrics.StepFailures.WithLabelValues(removeOrphan).Inc()
			return controller.Result{}, err
		}
	}
	if !found {
		r.timers.forget(id)
	}
	return controller.Result{RequeueAfter: max(left, 0)}, nil
}

func (r *Reconciler) removeOrphan(ctx context.Context, n runtime.Name, s runtime.State) error {
	if s.Running {
		if err := r.Engine.Kill(ctx, n); err != nil {
			return err
		}
	}
	if err := r.Engine.Remove(ctx, n); err != nil {
		return err
	}
	r.Metrics.Repaired.WithLabelValues("orphan").Inc()
	r.Log.Warn("a container without a record was removed", "container", n.ID, "role", n.Role, "container_id", s.ContainerID)
	return nil
}
