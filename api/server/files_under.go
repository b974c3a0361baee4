package server

import (
	"context"
	"sync"
)

// inFlight is everything that a shutdown cancels and that is no session. The zero value is ready to use.
type inFlight struct {
	mu     sync.Mutex
	set    map[int]context.CancelFunc
	last   int
	ending bool
}

// begin takes in an operation, which the shutdown of the server cancels. Done
// has to be called at its own end.
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

// end tells every operation, and those to come, that the server ends: they stop
// and clean up.
func (u *inFlight) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ending = true
	for _, cancel := range u.set {
		cancel()
	}
}
