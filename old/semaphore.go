package container

import (
	"context"
	"slices"
	"sync"
)

// Semaphore limits the concurrent expensive calls of an engine, which create, start
// or remove a container. No worker waits for a permit, so a kill never waits behind
// the starts of other containers: without a free permit the id is queued and its
// worker moves on. Source names the id when a permit is free for it. Starts come
// first: of many containers that are created and started at once, the first ones run
// early.
type Semaphore struct {
	mu     sync.Mutex
	free   int
	queue  []ticket
	notify func(id string) // nil before Source runs
}

// ticket is the place of a container in the queue for a permit.
type ticket struct {
	id     string
	starts bool // its step is a start
}

// NewSemaphore returns a Semaphore of n permits.
func NewSemaphore(n int) *Semaphore { return &Semaphore{free: n} }

// acquire takes a permit for container id. If none is free, or those that are free belong
// to containers that came before, it queues id and returns false.
func (s *Semaphore) acquire(id string, starts bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.place(id)
	if i < 0 {
		i = len(s.queue)
		if other := slices.IndexFunc(s.queue, func(t ticket) bool { return !t.starts }); starts && other >= 0 {
			i = other
		}
		s.queue = slices.Insert(s.queue, i, ticket{id, starts})
	}
	if i >= s.free {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	s.free--
	return true
}

func (s *Semaphore) place(id string) int {
	return slices.IndexFunc(s.queue, func(t ticket) bool { return t.id == id })
}

// release returns a permit.
func (s *Semaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.name()
}

// leave removes a container from the queue: it has no expensive step any more, or is gone.
func (s *Semaphore) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.place(id); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.name()
	}
}

// name names the containers for which permits are free.
func (s *Semaphore) name() {
	for _, t := range s.queue[:min(s.free, len(s.queue))] {
		if s.notify != nil {
			s.notify(t.id)
		}
	}
}

// Source is a controller.Source of the containers for which a permit is free.
func (s *Semaphore) Source(ctx context.Context, notify func(id string)) error {
	s.mu.Lock()
	s.notify = notify
	s.name()
	s.mu.Unlock()
	<-ctx.Done()
	return nil
}
