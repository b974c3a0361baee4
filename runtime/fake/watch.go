package fake

import (
	"context"
	"errors"

	"berth/runtime"
)

// errBroken is returned by a Watch that World.BreakWatch has ended.
var errBroken = errors.New("event stream ended")

// watcher collects the names that changed until its Watch takes them. add never
// blocks. Several changes of a name count once.
type watcher struct {
	names  []runtime.Name
	listed map[runtime.Name]bool
	wake   chan struct{} // holds one
	broken chan struct{} // closed by BreakWatch
}

// add is called with the world's lock held.
func (s *watcher) add(n runtime.Name) {
	if !s.listed[n] {
		s.listed[n] = true
		s.names = append(s.names, n)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Watch subscribes, lists, calls listed, and then calls notify for each container
// that changes, until ctx ends or World.BreakWatch is called.
func (e *Engine) Watch(ctx context.Context, listed func([]runtime.Found), notify func(runtime.Name)) error {
	if err := e.core.before(ctx, "watch", runtime.Name{}); err != nil {
		return err
	}
	s := e.core.subscribe()
	defer e.core.unsubscribe(s)
	found, err := e.List(ctx)
	if err != nil {
		return err
	}
	listed(found)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.broken:
			return errBroken
		case <-s.wake:
		}
		for _, n := range e.core.taken(s) {
			notify(n)
		}
	}
}

func (c *core) subscribe() *watcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &watcher{listed: map[runtime.Name]bool{}, wake: make(chan struct{}, 1), broken: make(chan struct{})}
	c.watchers[s] = true
	return s
}

func (c *core) unsubscribe(s *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, s)
}

func (c *core) taken(s *watcher) []runtime.Name {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := s.names
	s.names, s.listed = nil, map[runtime.Name]bool{}
	return names
}

// BreakWatch ends every Watch with an error, as the restart of an engine does.
func (w *World) BreakWatch() {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	for s := range w.core.watchers {
		close(s.broken)
		delete(w.core.watchers, s)
	}
}
