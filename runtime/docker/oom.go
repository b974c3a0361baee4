package docker

import (
	"sync"
	"time"
)

// ooms records from the events which containers ran out of memory. On a busy host
// the engine may receive that report after the exit. It then sends the event, but
// never corrects its answer to an inspect (1 of 40 runs under load).
type ooms struct {
	mu sync.Mutex
	at map[string]time.Time // of the last event, by the engine's id
}

func newOOMs() *ooms { return &ooms{at: map[string]time.Time{}} }

func (o *ooms) record(containerID string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at[containerID] = at
}

func (o *ooms) forget(containerID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.at, containerID)
}

// since returns when a container ran out of memory last in the run that began at started;
// zero if it did not.
func (o *ooms) since(containerID string, started time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.at[containerID]
	if started.IsZero() || !at.After(started) {
		return time.Time{}
	}
	return at
}
