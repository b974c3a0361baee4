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

// serverStep is a step that makes, changes or starts the server container.
type serverStep struct{ step }

// How long the rest of a container's log may take to be read before it is
// removed: a worker is held for one short call.
const drainTimeout = time.Second

func (s serverStep) take(ctx context.Context, a Action) (controller.Result, error) {
	n := serverName(s.c.Meta.ID)
	switch a {
	case CreateServer:
		return s.createServer(ctx)
	case RecordCreated:
		return requeue, s.record(func(st *v1.ContainerStatus, _ time.Time) { st.ContainerID = s.o.Server.ContainerID })
	case RemoveServer:
		return requeue, s.removeServer(ctx, n)
	case UpdateLimits:
		return s.updateLimits(ctx, n)
	case StartServer:
		return s.startServer(ctx, n)
	case RecordEngine:
		return requeue, s.recordEngine()
	case RecordStarting:
		_, err := s.recordUnchanged(func(st *v1.ContainerStatus, now time.Time) {
			s.adopt(st)
			st.Phase, st.StartRecordedAt = v1.Starting, s.o.Server.StartedAt.Add(-time.Second)
			startedAs(st, now)
		})
		return requeue, err
	case RecordRunning:
		return settled, s.record(func(st *v1.ContainerStatus, now time.Time) {
			s.adopt(st)
			st.Phase, st.NextRetryAt = v1.Running, nil
			startedAs(st, now)
		})
	case Unpause:
		return requeue, s.unpause(ctx, n)
	}
	return settled, controller.Terminal(fmt.Errorf("container %s: no action %d", s.c.Meta.ID, a))
}

// adopt keeps what the engine says of the run that goes on.
func (s serverStep) adopt(st *v1.ContainerStatus) {
	began := s.o.Server.StartedAt
	st.ContainerID, st.StartedAt, st.BootID, st.Engine = s.o.Server.ContainerID, &began, s.BootID, s.o.Engine
	st.FinishedAt, st.ExitCode, st.OOMKilled = nil, nil, false
}

func (s serverStep) createServer(ctx context.Context) (controller.Result, error) {
	_, r, err := s.create(ctx)
	return r, err
}

// removeServer removes the server container, and records that nobody else did.
func (s serverStep) removeServer(ctx context.Context, n runtime.Name) error {
	s.drain(ctx, serverTarget(s.c, s.o.Server))
	if err := s.Engine.Remove(ctx, n); err != nil || s.c.Meta.Deleted {
		return err
	}
	return s.record(func(st *v1.ContainerStatus, _ time.Time) {
		s.keepObserved(st)
		st.RemovedID, st.ServerVolume = s.o.Server.ContainerID, ""
		if underDiskPressure(s.c) { // the next run waits for its time: nobody else ended the last one
			st.ContainerID = ""
		}
	})
}

func (s serverStep) unpause(ctx context.Context, n runtime.Name) error {
	if s.o.Install.Paused {
		n = installerName(s.c.Meta.ID)
	}
	err := s.Engine.Unpause(ctx, n)
	if err == nil {
		s.Metrics.Repaired("paused")
	}
	return err
}

// removedOutside reports whether the container of the last run, which is wanted
// again, was removed by somebody else.
func (s serverStep) removedOutside() bool {
	st := s.c.Status
	return st.ContainerID != "" && st.ContainerID != st.RemovedID && s.c.Spec.Power == v1.PowerOn && st.ObservedRun == s.c.Spec.RunGeneration
}

// create makes the server container. Without an id there is none, and the
// result says what is next.
func (s serverStep) create(ctx context.Context) (id string, r controller.Result, err error) {
	if recorded, err := s.recordVolume(); err != nil || !recorded {
		return "", requeue, err
	}
	id, err = createMounted(ctx, s.step, serverSpec(s.c, s.Volume(s.c.Spec.VolumeID)))
	invalid := errors.Is(err, runtime.ErrInvalid) || errors.Is(err, runtime.ErrBadCommand)
	installs := s.c.Status.ObservedInstall != s.c.Spec.InstallGeneration
	switch {
	case err == nil:
		if s.removedOutside() {
			s.Metrics.Repaired("removed")
		}
		return id, requeue, nil
	case errors.Is(err, runtime.ErrImageNotFound):
		r, err = s.pull(s.c.Spec.Image)
	case installs && errors.Is(err, runtime.ErrRunning): // from outside: no run of ours
		r, err = requeue, s.Engine.Kill(ctx, serverName(s.c.Meta.ID))
	case invalid && installs:
		r, err = requeue, installStep(s).failInstall("InvalidSpec", err.Error())
	case errors.Is(err, runtime.ErrMountRefused):
		err = refuseMount(s.step, err)
	case invalid:
		err = controller.Terminal(err)
	}
	return "", r, err
}

// updateLimits changes limits live. What an engine accepts and does not apply
// is told, and not tried for ever.
func (s serverStep) updateLimits(ctx context.Context, n runtime.Name) (controller.Result, error) {
	err := s.Engine.Update(ctx, n, limits(s.c.Spec))
	if errors.Is(err, runtime.ErrUnavailable) {
		return settled, err
	}
	now, look := s.inspect(ctx, n)
	if look != nil || !exists(now) {
		return requeue, look
	}
	s.o.Server = now
	if !limitsDiffer(s.c.Spec, now.Live) {
		return requeue, s.record(func(*v1.ContainerStatus, time.Time) {}) // what was said of an earlier try is over
	}
	text := "the engine did not apply the limits"
	if err != nil {
		text += ": " + err.Error()
	}
	return requeue, s.record(func(st *v1.ContainerStatus, at time.Time) {
		st.Message, st.LimitsRefused = text, limitsTry(s.c, now)
		set(st, at, v1.LimitsApplied, v1.False, "Refused", text)
	}, text)
}

// limitsTry names one attempt to change the limits of one container.
func limitsTry(c v1.Container, server runtime.State) string {
	return fmt.Sprintf("%d/%s", c.Meta.Generation, server.ContainerID)
}

// startServer notes a start before it tries it, so that a crash between the two
// neither loses nor doubles it.
func (s serverStep) startServer(ctx context.Context, n runtime.Name) (controller.Result, error) {
	if !s.startRecorded() {
		instance, err := s.Outage.ask(ctx, s.Engine)
		if err != nil {
			return settled, err
		}
		s.o.Engine = instance
		if noted, err := s.recordUnchanged(s.starting); err != nil || !noted {
			return requeue, err
		}
	}
	err := startMounted(ctx, s.step, n)
	if reason, known := startFailure(err); known {
		return requeue, exitStep(s).recordStartFailure(reason, err)
	}
	if err != nil {
		return settled, err
	}
	return requeue, nil
}

// recordVolume records which volume the server container will mount, before it
// is made: the volume may not be removed until the engine says that the container
// is gone. It returns false if the spec has changed since it was loaded: its
// volume may be on its way out.
func (s serverStep) recordVolume() (recorded bool, err error) {
	if s.c.Status.ServerVolume == s.c.Spec.VolumeID {
		return true, nil
	}
	return s.recordUnchanged(func(st *v1.ContainerStatus, _ time.Time) {
		s.keepObserved(st)
		st.ServerVolume = s.c.Spec.VolumeID
	})
}

// recordUnchanged records what a step is about to do, unless the spec has changed
// since it was loaded: a client that changed it saw no run that had to end for
// it, and no volume that was to be mounted.
func (s serverStep) recordUnchanged(change func(*v1.ContainerStatus, time.Time)) (noted bool, err error) {
	err = s.Store.MustUpdate(func(tx *store.Tx) error {
		now, err := store.Containers.Get(tx, s.c.Meta.ID)
		noted = err == nil && now.Meta.Generation == s.c.Meta.Generation
		if !noted {
			return err
		}
		return s.recordIn(tx, change)
	})
	return noted, err
}

func (s serverStep) startRecorded() bool {
	st := s.c.Status
	return st.Phase == v1.Starting && st.ObservedRun == s.c.Spec.RunGeneration &&
		st.ContainerID == s.o.Server.ContainerID && st.StartedBefore.Equal(s.o.Server.StartedAt)
}

func (s serverStep) starting(st *v1.ContainerStatus, now time.Time) {
	switch {
	case st.ObservedRun != s.c.Spec.RunGeneration: // a wish
		st.RestartCount, st.Crashes = 0, 0
	case st.Phase != v1.Starting: // the policy
		st.RestartCount++
	}
	st.Phase, st.ObservedRun, st.StartRecordedAt = v1.Starting, s.c.Spec.RunGeneration, now
	st.BootID, st.Engine = s.BootID, s.o.Engine
	startedAs(st, now)
	st.ContainerID, st.StartedBefore = s.o.Server.ContainerID, s.o.Server.StartedAt
	st.StartedAt, st.FinishedAt, st.ExitCode, st.OOMKilled, st.NextRetryAt = nil, nil, nil, false, nil
}

// recordEngine records the instance of the engine under which a run goes on. It
// is no step toward the newest spec, which must not count as observed by it.
func (s serverStep) recordEngine() error {
	return s.record(func(st *v1.ContainerStatus, _ time.Time) {
		s.keepObserved(st)
		st.Engine = s.o.Engine
	})
}

// drain keeps the rest of a console before its container goes. What cannot be
// read in time is lost, and must not keep the container.
func (s step) drain(ctx context.Context, t runtime.Target) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	if err := s.Console.Drain(ctx, t); err != nil {
		s.Log.Warn("the end of a console was not read", "container", t.ID, "role", t.Role, "err", err)
	}
}
