package container

import (
	"fmt"
	"slices"
	"time"

	v1 "berth/api/v1"
)

// setCondition sets the condition of a type.
func setCondition(st *v1.ContainerStatus, now time.Time, kind, status, reason, message string) {
	st.Conditions = v1.SetCondition(st.Conditions, v1.Condition{Type: kind, Status: status, Reason: reason, Message: message}, now)
}

// setStarted sets the condition Started of a run that has not exited. Without a start
// pattern only the engine is waited for, and the message names that.
func setStarted(s v1.ContainerSpec, st *v1.ContainerStatus, now time.Time) {
	switch st.Phase {
	case v1.Starting:
		text := "the start pattern has not matched yet"
		if s.StartPattern == "" {
			text = "the engine is starting it"
			st.Message = text
		}
		setCondition(st, now, v1.Started, v1.Unknown, "Starting", text)
	case v1.Running:
		setCondition(st, now, v1.Started, v1.True, "Running", "the container runs")
	case v1.Stopping:
		setCondition(st, now, v1.Started, v1.True, "Stopping", "the container runs and was requested to exit")
	case v1.Deleting:
		setCondition(st, now, v1.Started, v1.Unknown, "Deleting", "the container is killed and removed")
	}
}

// Reasons of the condition Started after an exit.
const (
	reasonExited     = "Exited"     // by itself
	reasonRemoved    = "Removed"    // the container was removed from outside
	reasonNotStarted = "NotStarted" // the start was cancelled
)

// setStartedAfterExit sets the condition Started after an exit. Its reason is why
// nothing runs.
func (s exitStep) setStartedAfterExit(st *v1.ContainerStatus, now time.Time, stopped bool) {
	o := s.x.o.Server
	reason, text := reasonExited, fmt.Sprintf("the container exited with code %d", o.ExitCode)
	if ranOutOfMemory(o) {
		reason, text = v1.ReasonOutOfMemory, "the container ran out of memory"
	}
	switch {
	case vanished(s.x.c, o):
		reason, text = reasonRemoved, "the container was removed from outside"
	case startIsPending(s.x.c, o):
		reason, text = reasonNotStarted, "the start was cancelled before it began"
	case timedOut(s.x.c.Status):
		reason, text = v1.ReasonStartTimedOut, v1.FindCondition(s.x.c.Status.Conditions, v1.Started).Message
	case stopped:
		reason, text = "Stopped", "the container was stopped"
	case s.x.c.Spec.Power != v1.PowerOn:
		reason, text = "Killed", "the container was killed"
	case s.x.c.Status.BootID != s.x.o.BootID:
		reason, text = "HostRestarted", "the container exited with its host"
	case lost(s.x.c, s.x.o, s.x.o.ServerLost):
		reason, text = "EngineRestarted", "the container exited with the engine"
	}
	setCondition(st, now, v1.Started, v1.False, reason, text)
}

// clearUnmatched ends the condition StartPatternNotMatched with the start.
func clearUnmatched(st *v1.ContainerStatus, now time.Time) {
	switch st.Phase {
	case v1.Starting, v1.Stopping:
	case v1.Running:
		setMatched(st, now, "Matched", "the start pattern matched")
	default:
		setMatched(st, now, reasonExited, "the run has exited")
	}
}

// setMatched sets the condition StartPatternNotMatched to False if it is True.
func setMatched(st *v1.ContainerStatus, now time.Time, reason, text string) {
	if v1.FindCondition(st.Conditions, v1.StartPatternNotMatched).Status == v1.True {
		setCondition(st, now, v1.StartPatternNotMatched, v1.False, reason, text)
	}
}

// withoutCondition returns the conditions except for those of a type.
func withoutCondition(list []v1.Condition, kind string) []v1.Condition {
	return slices.DeleteFunc(slices.Clone(list), func(c v1.Condition) bool { return c.Type == kind })
}

// keptConditions returns the conditions that a new installation does not reset.
func keptConditions(list []v1.Condition) []v1.Condition {
	return slices.DeleteFunc(slices.Clone(list), func(c v1.Condition) bool {
		return c.Type != v1.DiskPressure && c.Type != v1.VolumeReady && c.Type != v1.Reconciled
	})
}
