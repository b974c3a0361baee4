package container

import (
	"fmt"
	"slices"
	"time"

	v1 "berth/api/v1"
)

// set replaces the condition of a type.
func set(st *v1.ContainerStatus, now time.Time, kind, status, reason, message string) {
	st.Conditions = v1.SetCondition(st.Conditions, v1.Condition{Type: kind, Status: status, Reason: reason, Message: message}, now)
}

// startedAs is what the condition Started is while a run begins or goes on.
func startedAs(st *v1.ContainerStatus, now time.Time) {
	switch st.Phase {
	case v1.Starting:
		set(st, now, v1.Started, v1.Unknown, "Starting", "the start pattern has not matched yet")
	case v1.Running:
		set(st, now, v1.Started, v1.True, "Running", "the container runs")
	case v1.Stopping:
		set(st, now, v1.Started, v1.True, "Stopping", "the container runs, and was asked to exit")
	case v1.Deleting:
		set(st, now, v1.Started, v1.Unknown, "Deleting", "the container is killed and removed")
	}
}

// startedAfter is what the condition Started is after an exit: why nothing runs.
func (s exitStep) startedAfter(st *v1.ContainerStatus, now time.Time, stopped bool) {
	o := s.o.Server
	reason, text := "Exited", fmt.Sprintf("the container exited with code %d", o.ExitCode)
	switch {
	case vanished(s.c, o):
		reason, text = "Removed", "the container was removed from outside"
	case startIsPending(s.c, o):
		reason, text = "NotStarted", "the start was called off before it began"
	case stopped:
		reason, text = "Stopped", "the container was stopped"
	case s.c.Spec.Power != v1.PowerOn:
		reason, text = "Killed", "the container was killed"
	case s.c.Status.BootID != s.o.BootID:
		reason, text = "HostRestarted", "the container exited with its host"
	case lost(s.c, s.o, s.o.ServerLost):
		reason, text = "EngineRestarted", "the container exited with the engine"
	}
	set(st, now, v1.Started, v1.False, reason, text)
}

// forInstallation keeps the conditions that a new installation says nothing about.
func forInstallation(list []v1.Condition) []v1.Condition {
	return slices.DeleteFunc(slices.Clone(list), func(c v1.Condition) bool {
		return c.Type != v1.DiskPressure && c.Type != v1.Reconciled
	})
}
