package container

import (
	"sync"
	"time"

	v1 "berth/api/v1"
)

// Timers measure the starts, stops, installations and disk pressure of containers by the
// monotonic clock of this process, so that a change of the host's clock neither
// shortens nor extends a grace period. After a restart of berth they begin at 0:
// it is unknown how much of a stored time was a jump of the clock.
type Timers struct {
	mu    sync.Mutex
	began map[string]map[timerKind]timer // by internal_id
}

// timerKind is the kind of a timer. A container has at most one timer of each.
type timerKind uint8

const (
	stopTimer     timerKind = iota // since the container was asked to exit
	startTimer                     // since the run was first observed starting
	installTimer                   // since the installer was first observed running
	pressureTimer                  // since the volume was first observed over its limit
)

type timer struct {
	of time.Time // identifies the start, stop, installation or disk pressure
	at time.Time // begin of the measurement
}

// since returns the time since the timer that of identifies began; 0 if it does not run.
// Begins starts it if it does not run.
func (t *Timers) since(id string, kind timerKind, of time.Time, begins bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, runs := t.began[id][kind]
	switch {
	case runs && old.of.Equal(of):
		return time.Since(old.at)
	case !begins:
		return 0
	case t.began == nil:
		t.began = map[string]map[timerKind]timer{}
	}
	if t.began[id] == nil {
		t.began[id] = map[timerKind]timer{}
	}
	t.began[id][kind] = timer{of, time.Now()}
	return 0
}

// forget removes all timers of a container that is gone.
func (t *Timers) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.began, id)
}

// observeTimers begins the timers of a container as it was observed, and stores the elapsed
// times in o.
func (r *Reconciler) observeTimers(c v1.Container, o *Observed) {
	id, st := c.Meta.ID, c.Status
	if st.Phase == v1.Stopping {
		o.StopFor = r.Timers.since(id, stopTimer, st.StopRecordedAt, st.StopSent)
	}
	if st.Phase == v1.Starting && o.Server.Running {
		o.StartFor = r.Timers.since(id, startTimer, o.Server.StartedAt, true)
	}
	o.InstallFor = r.Timers.since(id, installTimer, o.Install.StartedAt, o.Install.Running)
	if underDiskPressure(c) {
		o.PressureFor = r.Timers.since(id, pressureTimer, v1.FindCondition(st.Conditions, v1.DiskPressure).Since, true)
	}
}
