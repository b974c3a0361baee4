package container

import (
	"context"
	"sync"
	"time"
)

// Slots bound how many of an engine's heavy calls, which make, start or remove
// a container, are under way at once. Nobody waits for one on a worker, so a
// kill never waits behind the starts of others: who gets none is named again
// when one is free.
type Slots struct {
	mu      sync.Mutex
	free    int
	waiting []string // ids, in the order in which they asked
	queued  map[string]bool
	notify  func(id string)
}

// slotWait is when who got no slot looks again without having been named.
const slotWait = 2 * time.Second

// NewSlots makes n slots.
func NewSlots(n int) *Slots {
	return &Slots{free: n, queued: map[string]bool{}, notify: func(string) {}}
}

// take gets a slot, or a place in the row.
func (s *Slots) take(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		return true
	}
	if !s.queued[id] {
		s.queued[id] = true
		s.waiting = append(s.waiting, id)
	}
	return false
}

// give gives a slot back and names who may have it.
func (s *Slots) give() {
	s.mu.Lock()
	s.free++
	n := min(s.free, len(s.waiting))
	next := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	for _, id := range next {
		delete(s.queued, id)
	}
	notify := s.notify
	s.mu.Unlock()
	for _, id := range next {
		notify(id)
	}
}

// Source names who may try again.
func (s *Slots) Source(ctx context.Context, notify func(id string)) error {
	s.mu.Lock()
	s.notify = notify
	s.mu.Unlock()
	<-ctx.Done()
	return nil
}

// heavy says whether an action needs a slot.
func (a Action) heavy() bool {
	switch a {
	case MakeInstaller, StartInstaller, FinishInstall, RemoveInstaller, MakeServer, RemoveServer, StartServer:
		return true
	}
	return false
}
