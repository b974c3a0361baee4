package store

import "sync"

// turns lets one goroutine at a time write. A lone update does it itself, without a change of
// goroutine. Those that come meanwhile wait for one goroutine, which puts them into few commits.
type turns struct {
	mu      sync.Mutex
	taken   bool
	waiting []*op
	more    chan struct{} // has that goroutine take the turn
	ended   chan struct{} // nil, or close waits for it
	closed  bool
}

// take returns true if the turn is o's now. Otherwise o waits for an answer. It returns
// ErrClosed after close.
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

// first returns the first update that waits. Without one it returns nil, and the turn ends.
func (t *turns) first() *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) > 0 {
		return t.shift()
	}
	t.end()
	return nil
}

// next returns the first update that waits and may share a commit, or nil. The caller has the
// turn, and answers the update.
func (t *turns) next() *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
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

// pass ends the turn of an update, or gives it to the goroutine if others wait.
func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) > 0 {
		t.more <- struct{}{} // never blocks: the one sender has the turn, and the receiver takes it over
	} else {
		t.end()
	}
}

func (t *turns) end() {
	t.taken, t.waiting = false, nil
	if t.ended != nil {
		close(t.ended)
	}
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
	close(t.more)
}
