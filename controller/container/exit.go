package container

import (
	"context"
	"errors"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
)

// recordStopping records the begin of a graceful stop.
func (t *task) recordStopping() error {
	return t.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Unrequested = st.Phase == v1.Exit || st.Phase == v1.Ready
		st.Phase, st.StopRecordedAt, st.StopSent = v1.Stopping, now, false
		if t.o.Server.Leaving && t.c.Spec.Power == v1.PowerOn {
			st.Message = "the container has to leave its machine: it is stopped, and starts again"
		}
	})
}

// sendStop asks a container to exit: with its stop command or, if there is none or
// the console does not accept it, with its stop signal. The grace period begins
// with the first attempt that the engine answers, so that a refused signal does
// not keep a run for ever.
func (t *task) sendStop(ctx context.Context) error {
	input, signal := stopOf(t.c.Spec, t.o.Server)
	err := errors.New("no command")
	if input != "" {
		err = t.Console.Input(ctx, t.c.Meta.ID, []byte(input))
	}
	if err != nil {
		err = t.Engine.Signal(ctx, t.serverName(), signal)
	}
	if !errors.Is(err, runtime.ErrUnavailable) {
		t.timers.since(t.c.Meta.ID, stopTimer, t.c.Status.StopRecordedAt, true)
	}
	if err != nil {
		return err
	}
	return t.record(func(st *v1.ContainerStatus, _ time.Time) { st.StopSent = true })
}

// killServer ends a run without a grace period.
func (t *task) killServer(ctx context.Context) error { return t.Engine.Kill(ctx, t.serverName()) }

// recordExit records an exit that the engine reported, and when the next run may
// begin.
func (t *task) recordExit() error {
	if exists(t.o.Server) {
		t.Console.Follow(t.serverTarget()) // reads the output of the time while berth was away
	}
	err := t.record(func(st *v1.ContainerStatus, now time.Time) {
		stopped := st.Phase == v1.Stopping
		st.Phase, st.StopRecordedAt, st.StopSent, st.Unrequested = v1.Exit, time.Time{}, false, false
		st.Totals.Exits++
		switch {
		case timedOut(t.c.Status):
			t.setExit(st)
			st.Message = v1.FindCondition(st.Conditions, v1.Started).Message
		case vanished(t.c, t.o.Server):
			st.Message = "the container was removed from outside"
		case !startIsPending(t.c, t.o.Server):
			t.setExit(st)
		}
		switch {
		case t.c.Spec.Power != v1.PowerOn:
		case st.ObservedRun != t.c.Spec.RunGeneration: // by a restart: clients must not take the exit for its result
			st.NextRetryAt = &now
		case stopped && pressure(t.c) == v1.ReasonRootOverLimit:
			t.nextCrash(st, now)
		case stopped && !timedOut(t.c.Status) && !left(t.c, t.o.Server): // by berth, for disk space or a new spec: the next run follows at once
			st.NextRetryAt = &now
		default:
			t.retry(st, now)
		}
		if t.c.Spec.Power == v1.PowerOn && underDiskPressure(t.c) {
			st.Message = "the volume is over its limit: the container starts again when there is space"
		}
	}, t.exitMessage()...)
	if err == nil && t.c.Status.Unrequested {
		t.Metrics.Repaired.WithLabelValues("started").Inc()
	}
	return err
}

// recordOOM corrects a recorded exit: the run ran out of memory.
func (t *task) recordOOM() error {
	return t.amend(func(st *v1.ContainerStatus, now time.Time) {
		t.setExit(st)
		if v1.FindCondition(st.Conditions, v1.Started).Reason == reasonExited {
			setCondition(st, now, condition(v1.Started, v1.False, v1.ReasonOutOfMemory, outOfMemoryText))
		}
	}, t.exitMessage()...)
}

// recordProcessKilled records that the kernel has killed a process of a run that goes on.
func (t *task) recordProcessKilled() error {
	return t.amend(func(st *v1.ContainerStatus, _ time.Time) { st.OOMAt = t.o.Server.OOMAt },
		message{v1.ReasonOutOfMemory, "the container used up its memory, and the kernel killed one of its processes; the run goes on"})
}

// setExit copies the exit that the engine reports into the status.
func (t *task) setExit(st *v1.ContainerStatus) {
	o := t.o.Server
	if ranOutOfMemory(t.c, o) && !st.OOMKilled {
		st.Totals.OOMKills++
	}
	st.StartedAt, st.FinishedAt = &o.StartedAt, &o.FinishedAt
	st.ExitCode, st.OOMKilled = &o.ExitCode, endedWithoutMemory(t.c, o)
	for _, m := range t.exitMessage() {
		st.Message = m.text
	}
}

func (t *task) exitMessage() []message {
	switch {
	case vanished(t.c, t.o.Server):
	case stopFailed(t.c, t.o.Server):
		return []message{{v1.ReasonKilled, stopFailedText(t.c)}}
	case ranOutOfMemory(t.c, t.o.Server):
		return []message{{text: outOfMemoryText}}
	}
	if _, text := exitReason(t.c, t.o); t.o.Foreign != "" {
		return []message{{text: text}}
	}
	return nil
}

// retry sets when the restart policy allows the next run. A run that ended with its
// machine, the host or the engine, or whose container was removed from outside, did not
// exit by itself: the next one begins at once. A run whose start timed out counts as
// a crash, whatever its exit code.
func (t *task) retry(st *v1.ContainerStatus, now time.Time) {
	ran := t.o.Server.FinishedAt.Sub(t.o.Server.StartedAt)
	if t.o.Server.Interrupted && st.RestartCount > 0 && ran < t.Crash.ResetAfter {
		t.nextCrash(st, now) // a machine under pressure evicts again what begins there again
		return
	}
	if vanished(t.c, t.o.Server) || lost(t.c, t.o, t.o.Server) {
		st.NextRetryAt = &now
		return
	}
	failed := t.o.Server.ExitCode != 0 || timedOut(t.c.Status)
	if failed {
		st.Totals.Crashes++
	}
	mode := t.c.Spec.RestartPolicy.Mode
	if mode == v1.RestartNever || mode != v1.RestartAlways && !failed {
		st.NextRetryAt = nil
		return
	}
	if ran >= t.Crash.ResetAfter && !timedOut(t.c.Status) {
		st.Crashes = 0
	}
	t.nextCrash(st, now)
}

// nextCrash counts one more crash and sets the time of the retry.
func (t *task) nextCrash(st *v1.ContainerStatus, now time.Time) {
	at := now.Add(t.Crash.After(st.Crashes))
	st.Crashes++
	st.NextRetryAt = &at
}

// roomWait is the longest time between two attempts for which no machine has room, or a quota of the cluster has none:
// nobody reports that there is some.
const roomWait = 30 * time.Second
