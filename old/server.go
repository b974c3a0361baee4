package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// serverStep executes a step that creates, changes or starts the server container.
type serverStep struct{ x execution }

// drainTimeout limits how long the rest of a container's output is read before the
// container is removed: a worker is held for one short call.
const drainTimeout = time.Second

func (s serverStep) execute(ctx context.Context, a Action) (controller.Result, error) {
	n := serverName(s.x.c.Meta.ID)
	switch a {
	case CreateServer:
		return s.createServer(ctx)
	case RecordCreated:
		return controller.RequeueNow(), s.x.record(func(st *v1.ContainerStatus, _ time.Time) { st.ContainerID = s.x.o.Server.ContainerID })
	case RemoveServer:
		return controller.RequeueNow(), s.removeServer(ctx, n)
	case UpdateLimits:
		return s.updateLimits(ctx, n)
	case StartServer:
		return s.startServer(ctx, n)
	case RecordEngine:
		return controller.RequeueNow(), s.recordEngine()
	case RecordStarting:
		_, err := s.recordUnchanged(func(st *v1.ContainerStatus, now time.Time) {
			s.adopt(st)
			st.Phase, st.StartRecordedAt = v1.Starting, s.x.o.Server.StartedAt.Add(-time.Second)
			setStarted(s.x.c.Spec, st, now)
		})
		return controller.RequeueNow(), err
	case RecordRunning:
		return controller.Result{}, s.x.record(func(st *v1.ContainerStatus, now time.Time) {
			s.adopt(st)
			st.Phase, st.NextRetryAt = v1.Running, nil
			setStarted(s.x.c.Spec, st, now)
		})
	case Unpause:
		return controller.RequeueNow(), s.unpause(ctx, n)
	}
	return controller.Result{}, controller.Terminal(fmt.Errorf("container %s: no action %d", s.x.c.Meta.ID, a))
}

// adopt copies the observed run into the status.
func (s serverStep) adopt(st *v1.ContainerStatus) {
	began := s.x.o.Server.StartedAt
	st.ContainerID, st.StartedAt, st.BootID, st.Engine = s.x.o.Server.ContainerID, &began, s.x.r.BootID, s.x.o.Engine
	st.FinishedAt, st.ExitCode, st.OOMKilled = nil, nil, false
}

func (s serverStep) createServer(ctx context.Context) (controller.Result, error) {
	_, r, err := s.create(ctx)
	return r, err
}

// removeServer removes the server container, and records that it was not removed
// from outside.
func (s serverStep) removeServer(ctx context.Context, n runtime.Name) error {
	s.x.drain(ctx, serverTarget(s.x.c, s.x.o.Server))
	if err := s.x.r.Engine.Remove(ctx, n); err != nil || s.x.c.Meta.Deleted {
		return err
	}
	return s.x.record(func(st *v1.ContainerStatus, _ time.Time) {
		s.x.keepObserved(st)
		st.RemovedID, st.ServerVolume = s.x.o.Server.ContainerID, ""
		if underDiskPressure(s.x.c) { // otherwise the container counts as removed from outside and runs again at once
			st.ContainerID = ""
		}
	})
}

func (s serverStep) unpause(ctx context.Context, n runtime.Name) error {
	if s.x.o.Install.Paused {
		n = installerName(s.x.c.Meta.ID)
	}
	err := s.x.r.Engine.Unpause(ctx, n)
	if err == nil {
		s.x.r.Metrics.Repaired("paused")
	}
	return err
}

// removedOutside reports whether the container of the requested run was removed
// from outside.
func (s serverStep) removedOutside() bool {
	st := s.x.c.Status
	return st.ContainerID != "" && st.ContainerID != st.RemovedID && s.x.c.Spec.Power == v1.PowerOn && st.ObservedRun == s.x.c.Spec.RunGeneration
}

// create creates the server container. If id is empty there is none, and r is the
// result of the step.
func (s serverStep) create(ctx context.Context) (id string, r controller.Result, err error) {
	if recorded, err := s.recordVolume(); err != nil || !recorded {
		return "", controller.RequeueNow(), err
	}
	id, err = createMounted(ctx, s.x, serverSpec(s.x.c, s.x.r.Volume(s.x.c.Spec.VolumeID)))
	invalid := errors.Is(err, runtime.ErrInvalid) || errors.Is(err, runtime.ErrBadCommand)
	installs := s.x.c.Status.ObservedInstall != s.x.c.Spec.InstallGeneration
	switch {
	case err == nil:
		if s.removedOutside() {
			s.x.r.Metrics.Repaired("removed")
		}
		return id, controller.RequeueNow(), nil
	case errors.Is(err, runtime.ErrImageNotFound):
		r, err = s.x.pull(s.x.c.Spec.Image)
	case installs && errors.Is(err, runtime.ErrRunning): // from outside: no run of ours
		r, err = controller.RequeueNow(), s.x.r.Engine.Kill(ctx, serverName(s.x.c.Meta.ID))
	case invalid && installs:
		r, err = controller.RequeueNow(), installStep(s).failInstall("InvalidSpec", err.Error())
	case errors.Is(err, runtime.ErrMountRefused):
		err = refuseMount(s.x, err)
	case invalid:
		err = controller.Terminal(err)
	}
	return "", r, err
}

// updateLimits changes the limits of an existing container. Limits that the engine
// does not apply are recorded as refused, and not retried.
func (s serverStep) updateLimits(ctx context.Context, n runtime.Name) (controller.Result, error) {
	err := s.x.r.Engine.Update(ctx, n, limits(s.x.c.Spec))
	if errors.Is(err, runtime.ErrUnavailable) {
		return controller.Result{}, err
	}
	now, inspectErr := s.x.r.inspect(ctx, n)
	if inspectErr != nil || !exists(now) {
		return controller.RequeueNow(), inspectErr
	}
	s.x.o.Server = now
	if !limitsDiffer(s.x.c.Spec, now.Live) {
		if s.x.c.Status.ObservedGeneration == s.x.c.Meta.Generation && !failing(s.x.c) { // nobody has changed the spec
			s.x.r.Metrics.Repaired("limits")
		}
		return controller.RequeueNow(), s.x.record(func(*v1.ContainerStatus, time.Time) {}) // clears the message of an earlier attempt
	}
	text := "the engine did not apply the limits"
	switch {
	case err != nil:
		text += ": " + err.Error()
	case limits(s.x.c.Spec).NoOOMKill && !now.Live.NoOOMKill:
		text = "the engine did not apply limits.oom_kill: its host kills processes that use up the memory, as every host with cgroup v2 does"
	}
	return controller.RequeueNow(), s.x.record(func(st *v1.ContainerStatus, at time.Time) {
		st.Message, st.LimitsRefused = text, limitsAttempt(s.x.c, now)
		setCondition(st, at, v1.LimitsApplied, v1.False, "Refused", text)
	}, text)
}

// limitsAttempt identifies one attempt to change the limits of one container.
func limitsAttempt(c v1.Container, server runtime.State) string {
	return fmt.Sprintf("%d/%s", c.Meta.Generation, server.ContainerID)
}

// startServer records a start before it calls the engine, so that a crash between
// the two neither loses nor repeats the start.
func (s serverStep) startServer(ctx context.Context, n runtime.Name) (controller.Result, error) {
	if !s.startRecorded() {
		instance, err := s.x.r.Outage.query(ctx, s.x.r.Engine)
		if err != nil {
			return controller.Result{}, err
		}
		s.x.o.Engine = instance
		// A restore of the volume waits only for the starts that are recorded.
		free := func(tx *store.Tx) bool { return store.Restoring(tx, s.x.c.Spec.VolumeID) == "" }
		if recorded, err := s.recordIf(free, s.setStarting); err != nil || !recorded {
			return controller.RequeueNow(), err
		}
	}
	switch err := s.applyConfigFiles(ctx); {
	case errors.Is(err, runtime.ErrConfigBusy):
		return waitFor(configRetry), nil
	case err != nil:
		return controller.Result{}, err
	}
	err := startMounted(ctx, s.x, n)
	if reason, known := startFailure(err); known {
		return controller.RequeueNow(), exitStep(s).recordStartFailure(reason, err)
	}
	if err != nil {
		return controller.Result{}, err
	}
	return controller.RequeueNow(), nil
}

// recordVolume records which volume the server container mounts, before the
// container is created: the volume must not be removed until the engine reports that
// the container is gone. It returns false if the spec has changed since it was
// loaded: its volume may be about to be removed.
func (s serverStep) recordVolume() (recorded bool, err error) {
	if s.x.c.Status.ServerVolume == s.x.c.Spec.VolumeID {
		return true, nil
	}
	return s.recordUnchanged(func(st *v1.ContainerStatus, _ time.Time) {
		s.x.keepObserved(st)
		st.ServerVolume = s.x.c.Spec.VolumeID
	})
}

// recordUnchanged stores a change of the status before the call that it announces.
// It returns false if the spec has changed since it was loaded: the request that
// changed it saw neither the announced run nor the volume to be mounted.
func (s serverStep) recordUnchanged(change func(*v1.ContainerStatus, time.Time)) (recorded bool, err error) {
	return s.recordIf(func(*store.Tx) bool { return true }, change)
}

// recordIf is recordUnchanged if may returns true too.
func (s serverStep) recordIf(may func(*store.Tx) bool, change func(*v1.ContainerStatus, time.Time)) (recorded bool, err error) {
	err = s.x.r.Store.MustUpdate(func(tx *store.Tx) error {
		now, err := store.Containers.Get(tx, s.x.c.Meta.ID)
		recorded = err == nil && now.Meta.Generation == s.x.c.Meta.Generation && may(tx)
		if !recorded {
			return err
		}
		return s.x.recordIn(tx, change)
	})
	return recorded, err
}

func (s serverStep) startRecorded() bool {
	st := s.x.c.Status
	return st.Phase == v1.Starting && st.ObservedRun == s.x.c.Spec.RunGeneration &&
		st.ContainerID == s.x.o.Server.ContainerID && st.StartedBefore.Equal(s.x.o.Server.StartedAt)
}

func (s serverStep) setStarting(st *v1.ContainerStatus, now time.Time) {
	switch {
	case st.ObservedRun != s.x.c.Spec.RunGeneration: // requested by a client
		st.RestartCount, st.Crashes = 0, 0
	case st.Phase != v1.Starting: // without a request: by the restart policy, after a restore, ...
		st.RestartCount++
		st.Totals.Restarts++
	}
	st.Phase, st.ObservedRun, st.StartRecordedAt = v1.Starting, s.x.c.Spec.RunGeneration, now
	st.BootID, st.Engine = s.x.r.BootID, s.x.o.Engine
	setStarted(s.x.c.Spec, st, now)
	setMatched(st, now, "Starting", "another run is starting")
	st.ContainerID, st.StartedBefore = s.x.o.Server.ContainerID, s.x.o.Server.StartedAt
	st.StartedAt, st.FinishedAt, st.ExitCode, st.OOMKilled, st.NextRetryAt = nil, nil, nil, false, nil
	st.ImagePulled, st.OutdatedID = "", ""
}

// recordEngine records the instance of the engine under which a run continues. It
// is no step toward the newest spec, which must not count as observed.
func (s serverStep) recordEngine() error {
	return s.x.record(func(st *v1.ContainerStatus, _ time.Time) {
		s.x.keepObserved(st)
		st.Engine = s.x.o.Engine
	})
}

// drain saves the rest of a container's output before the container is removed.
// Output that cannot be read in time is lost, and does not delay the removal.
func (s execution) drain(ctx context.Context, t runtime.Target) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	if err := s.r.Console.Drain(ctx, t); err != nil {
		s.r.Log.Warn("the last output of a container was not read", "container", t.ID, "role", t.Role, "err", err)
	}
}
