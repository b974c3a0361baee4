package store

import "sync"

// turns lets one goroutine at a time write. It takes the updates of those that wait into its
// own commit, so that there are few commits when there are many updates, and no change of
// goroutine when there is one.
type turns struct {
	mu      sync.Mutex
	taken   bool
	waiting []*op
	ended   chan struct{} // nil, or close waits for it
	closed  bool
}

// take returns true if the turn is o's now. Otherwise o waits for an answer or for o.turn. It
// returns ErrClosed after close.
func (t *turns) take(o *op) (mine bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return false, ErrClosed
	case t.taken:
		t.waiting = append(t.waiting, o)
		return false, nil
	}
	t.taken = true
	return true, nil
}

// next returns the first update that waits and may share a commit, or nil. The caller has the
// turn, and answers the update.
func (t *turns) next() *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 || t.waiting[0].repairs {
		return nil
	}
	return t.shift()
}

func (t *turns) shift() *op {
	first := t.waiting[0]
	t.waiting[0] = nil
	t.waiting = t.waiting[1:]
	return first
}

// pass gives the turn to the first that waits.
func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.waiting) > 0:
		t.shift().turn <- struct{}{}
		return
	case t.ended != nil:
		close(t.ended)
	}
	t.taken, t.waiting = false, nil
}

// close refuses those that wait and all that follow, and returns when no turn is left.
func (t *turns) close() {
	t.mu.Lock()
	t.closed = true
	for _, o := range t.waiting {
		o.done <- ErrClosed
	}
	t.waiting = nil
	ended := make(chan struct{})
	if t.taken {
		t.ended = ended
	} else {
		close(ended)
	}
	t.mu.Unlock()
	<-ended
}
