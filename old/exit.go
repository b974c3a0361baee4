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

// exitStep executes a step that stops a run or records its exit.
type exitStep struct{ x execution }

func (s exitStep) execute(ctx context.Context, a Action) (controller.Result, error) {
	n := serverName(s.x.c.Meta.ID)
	switch a {
	case RecordStopping:
		return controller.RequeueNow(), s.x.record(func(st *v1.ContainerStatus, now time.Time) {
			st.Unrequested = st.Phase == v1.Exit || st.Phase == v1.Ready
			st.Phase, st.StopRecordedAt, st.StopSent = v1.Stopping, now, false
			setStarted(s.x.c.Spec, st, now)
		})
	case SendStop:
		return controller.RequeueNow(), s.sendStop(ctx, n)
	case KillServer:
		return controller.RequeueNow(), s.x.r.Engine.Kill(ctx, n)
	case RecordOOM:
		return controller.RequeueNow(), s.recordOOM()
	}
	return controller.RequeueNow(), s.recordExit()
}

// sendStop asks a container to exit: with its stop command or, if there is none or
// the console does not accept it, with its stop signal. The grace period begins
// with the first attempt that the engine answers, so that a refused signal does
// not keep a run for ever.
func (s exitStep) sendStop(ctx context.Context, n runtime.Name) error {
	err := errors.New("no command")
	if s.x.c.Spec.Stop.Command != "" {
		err = s.x.r.Console.Input(ctx, s.x.c.Meta.ID, []byte(s.x.c.Spec.Stop.Command))
	}
	if err != nil {
		err = s.x.r.Engine.Signal(ctx, n, stopSignal(s.x.c.Spec))
	}
	if !errors.Is(err, runtime.ErrUnavailable) {
		s.x.r.Timers.since(s.x.c.Meta.ID, stopTimer, s.x.c.Status.StopRecordedAt, true)
	}
	if err != nil {
		return err
	}
	return s.x.record(func(st *v1.ContainerStatus, _ time.Time) {
		st.StopSent = true
		if timedOut(*st) {
			st.Message = s.x.c.Status.Message
		}
	})
}

// recordExit records an exit that the engine reported, and when the next run may
// begin.
func (s exitStep) recordExit() error {
	if exists(s.x.o.Server) {
		s.x.r.Console.Follow(serverTarget(s.x.c, s.x.o.Server)) // reads the output of the time while berth was away
	}
	err := s.x.record(func(st *v1.ContainerStatus, now time.Time) {
		stopped := st.Phase == v1.Stopping
		st.Phase, st.StopRecordedAt, st.StopSent, st.Unrequested = v1.Exit, time.Time{}, false, false
		s.setStartedAfterExit(st, now, stopped)
		switch {
		case timedOut(s.x.c.Status):
			s.setExit(st)
			st.Message = v1.FindCondition(st.Conditions, v1.Started).Message
		case vanished(s.x.c, s.x.o.Server):
			st.Message = "the container was removed from outside"
		case !startIsPending(s.x.c, s.x.o.Server):
			s.setExit(st)
		}
		switch {
		case s.x.c.Spec.Power != v1.PowerOn:
		case st.ObservedRun != s.x.c.Spec.RunGeneration: // by a restart: clients must not take the exit for its result
			st.NextRetryAt = &now
		case stopped && pressure(s.x.c) == v1.ReasonRootOverLimit:
			s.nextCrash(st, now)
		case stopped && !timedOut(s.x.c.Status): // by berth, for disk space or a new spec: the next run follows at once
			st.NextRetryAt = &now
		default:
			s.retry(st, now)
		}
		if s.x.c.Spec.Power == v1.PowerOn && underDiskPressure(s.x.c) {
			st.Message = "the volume is over its limit: the container starts again when there is space"
		}
	}, s.exitMessage()...)
	if err == nil && s.x.c.Status.Unrequested {
		s.x.r.Metrics.Repaired("started")
	}
	return err
}

// recordOOM corrects a recorded exit: the run ran out of memory. It is no step
// toward the newest spec, which must not count as observed.
func (s exitStep) recordOOM() error {
	return s.x.record(func(st *v1.ContainerStatus, now time.Time) {
		s.x.keepObserved(st)
		s.setExit(st)
		if v1.FindCondition(st.Conditions, v1.Started).Reason == reasonExited {
			setCondition(st, now, v1.Started, v1.False, v1.ReasonOutOfMemory, "the container ran out of memory")
		}
	}, s.exitMessage()...)
}

// setExit copies the exit that the engine reports into the status.
func (s exitStep) setExit(st *v1.ContainerStatus) {
	o := s.x.o.Server
	if ranOutOfMemory(o) && !st.OOMKilled {
		st.Totals.OOMKills++
	}
	st.StartedAt, st.FinishedAt = &o.StartedAt, &o.FinishedAt
	st.ExitCode, st.OOMKilled = &o.ExitCode, o.OOMKilled
	for _, text := range s.exitMessage() {
		st.Message = text
	}
}

// ranOutOfMemory reports whether memory ended a run. A run that survived the kill of
// one of its processes and exited with code 0 did not.
func ranOutOfMemory(server runtime.State) bool { return server.OOMKilled && server.ExitCode != 0 }

func (s exitStep) exitMessage() []string {
	if ranOutOfMemory(s.x.o.Server) && !vanished(s.x.c, s.x.o.Server) {
		return []string{"the container ran out of memory"}
	}
	return nil
}

// retry sets when the restart policy allows the next run. A run that ended with
// the host or the engine, or whose container was removed from outside, did not
// exit by itself: the next one begins at once. A run whose start timed out counts as
// a crash, whatever its exit code.
func (s exitStep) retry(st *v1.ContainerStatus, now time.Time) {
	if vanished(s.x.c, s.x.o.Server) || lost(s.x.c, s.x.o, s.x.o.ServerLost) {
		st.NextRetryAt = &now
		return
	}
	failed := s.x.o.Server.ExitCode != 0 || timedOut(s.x.c.Status)
	if failed {
		st.Totals.Crashes++
	}
	mode := s.x.c.Spec.RestartPolicy.Mode
	if mode == v1.RestartNever || mode != v1.RestartAlways && !failed {
		st.NextRetryAt = nil
		return
	}
	ran := s.x.o.Server.FinishedAt.Sub(s.x.o.Server.StartedAt)
	if ran >= s.x.r.Crash.ResetAfter && !timedOut(s.x.c.Status) {
		st.Crashes = 0
	}
	s.nextCrash(st, now)
}

// nextCrash counts one more crash and sets the time of the retry.
func (s exitStep) nextCrash(st *v1.ContainerStatus, now time.Time) {
	at := now.Add(controller.Doubled(s.x.r.Crash.Initial, s.x.r.Crash.Max, st.Crashes))
	st.Crashes++
	st.NextRetryAt = &at
}

// reasonVolumeMissing is the reason of a failure while the directory of the volume, or
// of a mount, is missing.
const reasonVolumeMissing = "VolumeMissing"

// startFailure returns the reason of an error with which an engine refuses to
// start a container. Any other error is unknown, and the step is retried.
func startFailure(err error) (reason string, known bool) {
	switch {
	case errors.Is(err, runtime.ErrPortTaken):
		return "PortTaken", true
	case errors.Is(err, runtime.ErrBadCommand):
		return "BadCommand", true
	case errors.Is(err, runtime.ErrMountRefused):
		return reasonMountRefused, true
	case errors.Is(err, runtime.ErrMountMissing):
		return reasonVolumeMissing, true
	case errors.Is(err, runtime.ErrInvalid):
		return "InvalidSpec", true
	}
	return "", false
}

// recordStartFailure records why a start failed. It is retried with the backoff of
// a crash, also with the restart policy never: there was no run.
func (s exitStep) recordStartFailure(reason string, err error) error {
	if call := new(runtime.CallError); errors.As(err, &call) {
		err = call.Err // the container's message names neither the call nor the container
	}
	text := fmt.Sprintf("cannot start: %s", err)
	return s.x.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Phase, st.Message = v1.Exit, text
		if reason == "BadCommand" {
			code := 127 // the shell's exit code of a command that it cannot run
			st.ExitCode = &code
		}
		setCondition(st, now, v1.Started, v1.False, reason, text)
		s.nextCrash(st, now)
	}, text)
}
