package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
)

// exitStep is a step that ends a run, or tells how it ended.
type exitStep struct{ step }

func (s exitStep) take(ctx context.Context, a Action) (controller.Result, error) {
	n := serverName(s.c.Meta.ID)
	switch a {
	case RecordStopping:
		return requeue, s.record(func(st *v1.ContainerStatus, now time.Time) {
			st.Unrequested = st.Phase == v1.Exit || st.Phase == v1.Ready
			st.Phase, st.StopRecordedAt, st.StopSent = v1.Stopping, now, false
			startedAs(st, now)
		})
	case SendStop:
		return requeue, s.sendStop(ctx, n)
	case KillServer:
		return requeue, s.Engine.Kill(ctx, n)
	case RecordOOM:
		return requeue, s.recordOOM()
	}
	return requeue, s.recordExit()
}

// sendStop asks a container to exit. A command that its console does not take
// is followed by the signal. The grace period begins with the first attempt that
// the engine answers, so a signal that it refuses does not keep a run for ever.
func (s exitStep) sendStop(ctx context.Context, n runtime.Name) error {
	err := errors.New("no command")
	if s.c.Spec.Stop.Command != "" {
		err = s.Console.Input(ctx, s.c.Meta.ID, []byte(s.c.Spec.Stop.Command))
	}
	if err != nil {
		err = s.Engine.Signal(ctx, n, stopSignal(s.c.Spec))
	}
	if !errors.Is(err, runtime.ErrUnavailable) {
		s.Timers.begin(s.c.Meta.ID, stopTimer, s.c.Status.StopRecordedAt)
	}
	if err != nil {
		return err
	}
	return s.record(func(st *v1.ContainerStatus, _ time.Time) { st.StopSent = true })
}

// recordExit tells the end of a run, which the engine has said, and decides about
// the next one.
func (s exitStep) recordExit() error {
	if exists(s.o.Server) {
		s.Console.Follow(serverTarget(s.c, s.o.Server)) // what was printed while berth was away
	}
	err := s.record(func(st *v1.ContainerStatus, now time.Time) {
		stopped := st.Phase == v1.Stopping
		st.Phase, st.StopRecordedAt, st.StopSent, st.Unrequested = v1.Exit, time.Time{}, false, false
		s.startedAfter(st, now, stopped)
		switch {
		case vanished(s.c, s.o.Server):
			st.Message = "the container was removed from outside"
		case !startIsPending(s.c, s.o.Server):
			s.recordEnd(st)
		}
		switch {
		case s.c.Spec.Power != v1.PowerOn || st.ObservedRun != s.c.Spec.RunGeneration:
		case stopped && pressure(s.c) == v1.ReasonRootOverLimit:
			s.nextCrash(st, now)
		case stopped: // for want of space, or of the newest spec: it goes on when there is some
			st.NextRetryAt = &now
		default:
			s.retry(st, now)
		}
		if s.c.Spec.Power == v1.PowerOn && underDiskPressure(s.c) {
			st.Message = "the volume is over its limit: the container goes on when there is space"
		}
	}, s.exitMessage()...)
	if err == nil && s.c.Status.Unrequested {
		s.Metrics.Repaired("started")
	}
	return err
}

// recordOOM mends what was told of an end. It is no step toward the newest spec,
// which must not count as observed by it.
func (s exitStep) recordOOM() error {
	return s.record(func(st *v1.ContainerStatus, _ time.Time) {
		s.keepObserved(st)
		s.recordEnd(st)
	}, s.exitMessage()...)
}

// recordEnd keeps how the engine says that the run ended.
func (s exitStep) recordEnd(st *v1.ContainerStatus) {
	o := s.o.Server
	st.StartedAt, st.FinishedAt = &o.StartedAt, &o.FinishedAt
	st.ExitCode, st.OOMKilled = &o.ExitCode, o.OOMKilled
	for _, text := range s.exitMessage() {
		st.Message = text
	}
}

func (s exitStep) exitMessage() []string {
	if s.o.Server.OOMKilled && s.o.Server.ExitCode != 0 && !vanished(s.c, s.o.Server) {
		return []string{"the container ran out of memory"}
	}
	return nil
}

// retry sets when the policy lets a run that ended by itself begin again. What
// the host or somebody else took away is no end of its own: it begins at once.
func (s exitStep) retry(st *v1.ContainerStatus, now time.Time) {
	if vanished(s.c, s.o.Server) || lost(s.c, s.o, s.o.ServerLost) {
		st.NextRetryAt = &now
		return
	}
	failed := s.o.Server.ExitCode != 0
	mode := s.c.Spec.RestartPolicy.Mode
	if mode == v1.RestartNever || mode != v1.RestartAlways && !failed {
		st.NextRetryAt = nil
		return
	}
	if s.o.Server.FinishedAt.Sub(s.o.Server.StartedAt) >= s.Crash.ResetAfter {
		st.Crashes = 0
	}
	s.nextCrash(st, now)
}

// nextCrash counts one more crash and sets the retry: Initial doubling to Max.
func (s exitStep) nextCrash(st *v1.ContainerStatus, now time.Time) {
	wait := s.Crash.Initial << min(st.Crashes, 20)
	st.Crashes++
	at := now.Add(min(wait, s.Crash.Max))
	st.NextRetryAt = &at
}

// startFailure names the reasons for which an engine does not start a
// container. Anything else is no verdict, and tried again.
func startFailure(err error) (reason string, known bool) {
	switch {
	case errors.Is(err, runtime.ErrPortTaken):
		return "PortTaken", true
	case errors.Is(err, runtime.ErrBadCommand):
		return "BadCommand", true
	case errors.Is(err, runtime.ErrMountRefused):
		return reasonMountRefused, true
	case errors.Is(err, runtime.ErrMountMissing):
		return "VolumeMissing", true
	case errors.Is(err, runtime.ErrInvalid):
		return "InvalidSpec", true
	}
	return "", false
}

// recordStartFailure tells why a run did not begin. It is tried again with the
// backoff of a crash, also where the policy is never: it was no run.
func (s exitStep) recordStartFailure(reason string, err error) error {
	text := fmt.Sprintf("cannot start: %s", err)
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Phase, st.Message = v1.Exit, text
		if reason == "BadCommand" {
			code := 127 // the shell's convention for what cannot be run
			st.ExitCode = &code
		}
		set(st, now, v1.Started, v1.False, reason, text)
		s.nextCrash(st, now)
	}, text)
}
