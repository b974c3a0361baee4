package docker

import (
	"sync"
	"time"
)

// ooms remembers which containers ran out of memory, from the events. On a
// busy host the engine hears of it after the end of the run, tells the event,
// and never mends what it answers to an inspect (1 of 40 under load).
type ooms struct {
	mu sync.Mutex
	at map[string]time.Time // the last one, by the engine's id
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

// since tells whether a container ran out of memory in the run that started then.
func (o *ooms) since(containerID string, started time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, noted := o.at[containerID]
	return noted && !started.IsZero() && at.After(started)
}
