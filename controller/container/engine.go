package container

import (
	"context"
	"slices"
	"sync"
	"time"

	"berth/controller"
	"berth/runtime"
)

// Engine is a container engine; see runtime/engine.go. Every method is idempotent: it can be
// called again after a crash, and does nothing if its work is already done. An error does not
// mean that a container is absent, except runtime.ErrNotFound.
type Engine interface {
	Instance(ctx context.Context) (string, error) // over a new connection
	Gateway(ctx context.Context) (string, error)
	Inspect(ctx context.Context, n runtime.Name) (runtime.State, error)
	List(ctx context.Context) ([]runtime.Found, error)
	ImageID(ctx context.Context, ref string) (string, error)
	Foreign(ctx context.Context, imageID string) (string, error)
	Watch(ctx context.Context, listed func([]runtime.Found), notify func(runtime.Name)) error

	Account(ctx context.Context, n runtime.Name) (runtime.Account, error)
	Probe(ctx context.Context, s runtime.Spec) error
	Connect(ctx context.Context, n runtime.Name) error
	Create(ctx context.Context, s runtime.Spec) (containerID string, err error)
	Update(ctx context.Context, n runtime.Name, l runtime.Live) error
	Remove(ctx context.Context, n runtime.Name) error

	Start(ctx context.Context, n runtime.Name) error
	Signal(ctx context.Context, n runtime.Name, signal string) error
	Kill(ctx context.Context, n runtime.Name) error
	Unpause(ctx context.Context, n runtime.Name) error
}

// engineWait is the time between two attempts to query an engine that reported an
// exit and may be shutting down.
const engineWait = time.Second

// instances records which instance of the engine answered last. It determines whether a run
// ended with its engine.
type instances struct {
	mu       sync.Mutex
	instance string
	asked    time.Time // when the call began that returned it
}

// query returns the engine's instance. An error means that the engine accepts no
// new connection: it is unreachable or shutting down. Of calls that overlap, the one that
// began last counts: the other may have been answered by the engine before.
func (i *instances) query(ctx context.Context, e Engine) (instance string, err error) {
	began := time.Now()
	if instance, err = e.Instance(ctx); err != nil {
		return "", err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !began.Before(i.asked) {
		i.instance, i.asked = instance, began
	}
	return i.instance, nil
}

// last returns the instance that answered last; empty if it is unknown.
func (i *instances) last() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.instance
}

// EngineChanges returns a source of the containers that changed in the engine. It calls
// listed after each complete list; the daemon is ready after the first.
func (r *Reconciler) EngineChanges(listed func()) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		return r.Engine.Watch(ctx, func(found []runtime.Found) {
			_, _ = r.instances.query(ctx, r.Engine) // an error also ends the stream
			for _, f := range found {
				notify(f.Name.ID)
			}
			listed()
		}, func(n runtime.Name) { notify(n.ID) })
	}
}

// Semaphore limits the concurrent expensive calls of an engine, which create, start
// or remove a container. No worker waits for a permit, so a kill never waits behind
// the starts of other containers: without a free permit the id is queued and its
// worker moves on. Source names the id when a permit is free for it. Starts come
// first: one does not wait behind many containers that are being created.
//
// It is no jobs.Jobs, because the worker that has a permit takes the step itself: there
// is no job to begin, cancel and forget. A place in this queue lasts until the container leaves
// it, and starts always come first, while keys of jobs take turns and places expire: one queue
// for both would need each of these rules twice.
type Semaphore struct {
	mu     sync.Mutex
	free   int
	queue  []queued
	notify func(id string) // nil before Source runs
}

// queued is the place of a container in the queue for a permit.
type queued struct {
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
		if other := slices.IndexFunc(s.queue, func(q queued) bool { return !q.starts }); starts && other >= 0 {
			i = other
		}
		s.queue = slices.Insert(s.queue, i, queued{id, starts})
	}
	if i >= s.free {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	s.free--
	return true
}

func (s *Semaphore) place(id string) int {
	return slices.IndexFunc(s.queue, func(q queued) bool { return q.id == id })
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
	for _, q := range s.queue[:min(s.free, len(s.queue))] {
		if s.notify != nil {
			s.notify(q.id)
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
