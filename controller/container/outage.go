package container

import (
	"sync"
	"time"

	"berth/runtime"
)

// outageSlack is how much earlier than its stream of events an engine may take
// its containers down.
const outageSlack = time.Second

// Outage is the last time that the engine was away. What ended in it was taken
// down with the engine: that is no end of its own.
type Outage struct {
	mu       sync.Mutex
	from, to time.Time // to is zero while it lasts
}

// begin and end are told by Watch.
func (o *Outage) begin(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.from.IsZero() || !o.to.IsZero() {
		o.from, o.to = now.Add(-outageSlack), time.Time{}
	}
}

func (o *Outage) end(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.from.IsZero() && o.to.IsZero() {
		o.to = now
	}
}

// took says whether a container ended while the engine was away.
func (o *Outage) took(s runtime.State) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	ended := !s.Running && !s.StartedAt.IsZero() && !s.FinishedAt.IsZero()
	return ended && !o.from.IsZero() && s.FinishedAt.After(o.from) && (o.to.IsZero() || s.FinishedAt.Before(o.to))
}
