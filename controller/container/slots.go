package container

import (
	"context"
	"sync"
)

// Semaphore bound how many of an engine's heavy calls, which make, start or remove
// a container, are under way at once. Nobody waits for one on a worker, so a
// kill never waits behind the starts of others: who gets none takes a place in
// a row, and is named when a slot is kept for it. What can start comes first:
// of many that are made and started at once, the first run soon.
type Semaphore struct {
	mu      sync.Mutex
	free    int
	starts  []string        // ids that ask for a start, in the order in which they asked
	others  []string        // ids that ask for something else
	queued  map[string]bool // the ids of both rows
	granted map[string]bool // ids for which a slot is kept
	notify  func(id string) // nil before Source runs
}

// NewSemaphore makes n slots.
func NewSemaphore(n int) *Semaphore {
	return &Semaphore{free: n, queued: map[string]bool{}, granted: map[string]bool{}}
}

// acquire gets a slot for an action, or a place in its row.
func (s *Semaphore) acquire(id string, a Action) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.granted[id]:
		delete(s.granted, id)
		return true
	case s.free > 0:
		s.free--
		return true
	case !s.queued[id]:
		s.queued[id] = true
		row := s.queue(a.starts())
		*row = append(*row, id)
	}
	return false
}

func (s *Semaphore) queue(starts bool) *[]string {
	if starts {
		return &s.starts
	}
	return &s.others
}

// release hands a slot on to the first that waits.
func (s *Semaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.queue(len(s.starts) > 0)
	if len(*row) == 0 {
		s.free++
		return
	}
	id := (*row)[0]
	*row = (*row)[1:]
	delete(s.queued, id)
	s.granted[id] = true
	if s.notify != nil {
		s.notify(id)
	}
}

// handOver hands on a slot that was kept for id and that it did not take: it has
// nothing heavy to do any more, or is gone.
func (s *Semaphore) handOver(id string) {
	s.mu.Lock()
	named := s.granted[id]
	delete(s.granted, id)
	s.mu.Unlock()
	if named {
		s.release()
	}
}

// Source names those for whom a slot is kept.
func (s *Semaphore) Source(ctx context.Context, notify func(id string)) error {
	s.mu.Lock()
	s.notify = notify
	for id := range s.granted {
		notify(id)
	}
	s.mu.Unlock()
	<-ctx.Done()
	return nil
}

// expensive says whether an action needs a slot.
func (a Action) expensive() bool {
	switch a {
	case CreateInstaller, StartInstaller, FinishInstall, RemoveInstaller, CreateServer, RemoveServer, StartServer:
		return true
	}
	return false
}

// creates says whether an action makes a container, which may be to run.
func (a Action) creates() bool {
	return a == CreateInstaller || a == FinishInstall || a == CreateServer
}

// starts says whether an action lets a container run.
func (a Action) starts() bool { return a == StartInstaller || a == StartServer }
