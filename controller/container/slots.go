package container

import (
	"context"
	"sync"
)

// Slots bound how many of an engine's heavy calls, which make, start or remove
// a container, are under way at once. Nobody waits for one on a worker, so a
// kill never waits behind the starts of others: who gets none takes a place in
// a row, and is named when a slot is kept for it. What can start comes first:
// of many that are made and started at once, the first run soon.
type Slots struct {
	mu     sync.Mutex
	free   int
	starts []string        // ids that ask for a start, in the order in which they asked
	others []string        // ids that ask for something else
	inRow  map[string]bool // the ids of both rows
	named  map[string]bool // ids for which a slot is kept
	notify func(id string) // nil before Source runs
}

// NewSlots makes n slots.
func NewSlots(n int) *Slots {
	return &Slots{free: n, inRow: map[string]bool{}, named: map[string]bool{}}
}

// take gets a slot for an action, or a place in its row.
func (s *Slots) take(id string, a Action) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.named[id]:
		delete(s.named, id)
		return true
	case s.free > 0:
		s.free--
		return true
	case !s.inRow[id]:
		s.inRow[id] = true
		row := s.row(a.starts())
		*row = append(*row, id)
	}
	return false
}

func (s *Slots) row(starts bool) *[]string {
	if starts {
		return &s.starts
	}
	return &s.others
}

// give hands a slot on to the first that waits.
func (s *Slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(len(s.starts) > 0)
	if len(*row) == 0 {
		s.free++
		return
	}
	id := (*row)[0]
	*row = (*row)[1:]
	delete(s.inRow, id)
	s.named[id] = true
	if s.notify != nil {
		s.notify(id)
	}
}

// pass hands on a slot that was kept for id and that it did not take: it has
// nothing heavy to do any more, or is gone.
func (s *Slots) pass(id string) {
	s.mu.Lock()
	named := s.named[id]
	delete(s.named, id)
	s.mu.Unlock()
	if named {
		s.give()
	}
}

// Source names those for whom a slot is kept.
func (s *Slots) Source(ctx context.Context, notify func(id string)) error {
	s.mu.Lock()
	s.notify = notify
	for id := range s.named {
		notify(id)
	}
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

// makes says whether an action makes a container, which may be to run.
func (a Action) makes() bool { return a == MakeInstaller || a == FinishInstall || a == MakeServer }

// starts says whether an action lets a container run.
func (a Action) starts() bool { return a == StartInstaller || a == StartServer }
