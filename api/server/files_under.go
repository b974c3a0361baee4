package server

import (
	"context"
	"sync"
)

// inFlight is the set of running operations without a session. Shutdown cancels
// them. The zero value is ready to use.
type inFlight struct {
	mu     sync.Mutex
	set    map[int]context.CancelFunc
	last   int
	ending bool
}

// begin registers an operation by its cancel function; during a shutdown it
// cancels it at once. The caller must call done when the operation ends.
func (u *inFlight) begin(cancel context.CancelFunc) (done func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ending {
		cancel()
	}
	if u.set == nil {
		u.set = map[int]context.CancelFunc{}
	}
	u.last++
	n := u.last
	u.set[n] = cancel
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.set, n)
	}
}

// end cancels every operation, and those that begin later.
func (u *inFlight) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ending = true
	for _, cancel := range u.set {
		cancel()
	}
}
