package container

import (
	"time"

	v1 "berth/api/v1"
)

// deadlineTolerance is how far the recorded deadline may be from the measured one: the
// host's clock is slewed, and a record for that would help nobody.
const deadlineTolerance = time.Second

// deadline returns when the running installation, or the starting run, is ended by the
// host's clock; nil: no limit applies.
func deadline(c v1.Container, o Observed) *time.Time {
	var at time.Time
	switch {
	case o.Install.Running:
		at = o.Now.Add(installLeft(c, o))
	case c.Spec.StartTimeout > 0:
		at = o.Now.Add(time.Duration(c.Spec.StartTimeout) - o.StartFor)
	default:
		return nil
	}
	return &at
}

// deadlineMoved reports whether the deadline has to be recorded: there is no record
// yet, or the limit changed, or the host's clock was set, or berth restarted and
// measures anew.
func deadlineMoved(c v1.Container, o Observed) bool {
	recorded, at := c.Status.Deadline, deadline(c, o)
	if recorded == nil || at == nil {
		return recorded != at
	}
	return recorded.Sub(*at).Abs() > deadlineTolerance
}

// recordDeadline records the deadline for clients. It is no step toward the newest
// spec, which must not count as observed.
func recordDeadline(s execution) error {
	return s.record(func(st *v1.ContainerStatus, _ time.Time) {
		s.keepObserved(st)
		st.Deadline = deadline(s.c, s.o)
	})
}

// clearDeadline removes the deadline of an installation or a start that is over or has
// to begin anew. before is the phase before the change.
func clearDeadline(o Observed, st *v1.ContainerStatus, before v1.Phase) {
	if st.Phase != before || !o.Install.Running && !o.Server.Running {
		st.Deadline = nil
	}
}

// installLeft returns how long the installer may still run.
func installLeft(c v1.Container, o Observed) time.Duration {
	left := installTimeout(c.Spec) - o.InstallFor
	if underDiskPressure(c) {
		left = min(left, pressureLimit(c)-min(o.PressureFor, o.InstallFor))
	}
	return left
}
