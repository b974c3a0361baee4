package container

import (
	"context"
	"sync"
	"time"
)

// Semaphore limits the concurrent expensive calls of an engine, which create, start
// or remove a container. No worker waits for a permit, so a kill never waits behind
// the starts of other containers: without a free permit the id is queued and its
// worker moves on. Source names the id when a permit is reserved for it. Starts
// come first: of many containers that are created and started at once, the first
// ones run early.
type Semaphore struct {
	mu      sync.Mutex
	most    concurrency
	used    int             // permits that are held or reserved; more than the limit after it was lowered
	starts  []string        // queued ids whose step is a start, first come, first served
	others  []string        // queued ids of other steps
	queued  map[string]bool // the ids of both queues
	granted map[string]bool // ids for which a permit is reserved
	notify  func(id string) // nil before Source runs
}

// NewSemaphore returns a Semaphore of n permits.
func NewSemaphore(n int) *Semaphore { return newSemaphore(concurrency{limit: n}) }

// NewAdaptiveSemaphore returns a Semaphore of n permits at first, which then finds their
// number, 1 to most, by measuring.
func NewAdaptiveSemaphore(n, most int) *Semaphore {
	return newSemaphore(concurrency{limit: min(n, most), most: most})
}

func newSemaphore(c concurrency) *Semaphore {
	return &Semaphore{most: c, queued: map[string]bool{}, granted: map[string]bool{}}
}

// acquire takes a permit for an action. If none is free it queues id and returns
// false.
func (s *Semaphore) acquire(id string, a Action) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.granted[id]:
		delete(s.granted, id)
		return true
	case s.used < s.most.limit:
		s.used++
		return true
	case !s.queued[id]:
		s.queued[id] = true
		queue := s.queue(a.starts())
		*queue = append(*queue, id)
	}
	return false
}

func (s *Semaphore) queue(starts bool) *[]string {
	if starts {
		return &s.starts
	}
	return &s.others
}

// release returns a permit after its call has ended.
func (s *Semaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most.completed(time.Now(), len(s.queued) > 0)
	s.put()
}

// put returns a permit, and reserves the free ones for the next queued ids.
func (s *Semaphore) put() {
	s.used--
	for s.used < s.most.limit {
		queue := s.queue(len(s.starts) > 0)
		if len(*queue) == 0 {
			return
		}
		id := (*queue)[0]
		*queue = (*queue)[1:]
		delete(s.queued, id)
		s.granted[id] = true
		s.used++
		if s.notify != nil {
			s.notify(id)
		}
	}
}

// releaseUnused releases a permit that was reserved for id and not acquired: the
// container has no expensive step any more, or is gone.
func (s *Semaphore) releaseUnused(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.granted[id] {
		delete(s.granted, id)
		s.put()
	}
}

// Source is a controller.Source of the ids for which a permit is reserved.
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

// expensive reports whether an action needs a permit.
func (a Action) expensive() bool {
	switch a {
	case CreateInstaller, StartInstaller, FinishInstall, RemoveInstaller, CreateServer, RemoveServer, StartServer:
		return true
	}
	return false
}

// creates reports whether an action creates a container, which may have to run.
func (a Action) creates() bool {
	return a == CreateInstaller || a == FinishInstall || a == CreateServer
}

// starts reports whether an action starts a container.
func (a Action) starts() bool { return a == StartInstaller || a == StartServer }
