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
	began map[timerKey]timer
}

type timerKey struct {
	id   string // internal_id
	kind timerKind
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

// begin starts the timer that of identifies unless it runs.
func (t *Timers) begin(id string, kind timerKind, of time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began == nil {
		t.began = map[timerKey]timer{}
	}
	k := timerKey{id, kind}
	if old, ok := t.began[k]; !ok || !old.of.Equal(of) {
		t.began[k] = timer{of, time.Now()}
	}
}

// elapsed returns the time since begin; 0 if the timer does not run.
func (t *Timers) elapsed(id string, kind timerKind, of time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.began[timerKey{id, kind}]; ok && old.of.Equal(of) {
		return time.Since(old.at)
	}
	return 0
}

// end removes a timer.
func (t *Timers) end(id string, kind timerKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.began, timerKey{id, kind})
}

// observeTimers starts and ends the timers of a container as it was observed, and
// stores the elapsed times in o.
func (r *Reconciler) observeTimers(c v1.Container, o *Observed) {
	id, st := c.Meta.ID, c.Status
	switch {
	case st.Phase != v1.Stopping:
		r.Timers.end(id, stopTimer)
	case st.StopSent:
		r.Timers.begin(id, stopTimer, st.StopRecordedAt)
	}
	o.StopFor = r.Timers.elapsed(id, stopTimer, st.StopRecordedAt)
	if st.Phase == v1.Starting && o.Server.Running {
		r.Timers.begin(id, startTimer, o.Server.StartedAt)
	} else {
		r.Timers.end(id, startTimer)
	}
	o.StartFor = r.Timers.elapsed(id, startTimer, o.Server.StartedAt)
	if o.Install.Running {
		r.Timers.begin(id, installTimer, o.Install.StartedAt)
	}
	if !exists(o.Install) {
		r.Timers.end(id, installTimer)
	}
	o.InstallFor = r.Timers.elapsed(id, installTimer, o.Install.StartedAt)
	since := v1.FindCondition(st.Conditions, v1.DiskPressure).Since
	if underDiskPressure(c) {
		r.Timers.begin(id, pressureTimer, since)
	} else {
		r.Timers.end(id, pressureTimer)
	}
	o.PressureFor = r.Timers.elapsed(id, pressureTimer, since)
}

// forget removes all timers of a container that is gone.
func (t *Timers) forget(id string) {
	for _, kind := range []timerKind{stopTimer, startTimer, installTimer, pressureTimer} {
		t.end(id, kind)
	}
}
