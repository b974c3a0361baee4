package sftp

import "sync"

// inFlight are the requests that pkg/sftp has and has not answered, in their order, which is
// that of the answers.
//
// pkg/sftp carries out reads and writes of content beside one another, and beside the one
// other request that it carries out: it would set the time of a file, for example, before the
// writes that were sent earlier. So each kind waits until no request of the other is in flight.
// A close waits in pkg/sftp, until all before it have ended.
type inFlight struct {
	mu      sync.Mutex
	changed *sync.Cond
	list    []request
	cost    int // of all
	count   [3]int
	next    request // waits
	closed  bool
}

// request is what decides when a request is passed on.
type request struct {
	kind    order
	closes  bool // a file or a folder
	arrived bool // whole: it needs nothing more from the client
	cost    int  // bytes of memory, with its answer
}

// order is with which others a request is carried out.
type order int

const (
	byItself order = iota // after those before it: neither a read nor a write of content
	beside                // beside others of its kind: content
	alone                 // content that is appended
)

func newInFlight() *inFlight {
	f := &inFlight{}
	f.changed = sync.NewCond(&f.mu)
	return f
}

// add waits until a request may be passed on. It returns false after close.
func (f *inFlight) add(r request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = r
	for len(f.list) > 0 && (f.cost+r.cost > maxInFlight || f.waits(r)) && !f.closed {
		f.changed.Wait()
	}
	f.next = request{}
	if f.closed {
		return false
	}
	f.cost += r.cost
	f.count[r.kind]++
	f.list = append(f.list, r)
	return true
}

func (f *inFlight) waits(r request) bool {
	switch {
	case r.closes:
		return false
	case r.kind == alone:
		return true
	}
	return f.count[alone] > 0 || f.count[1-r.kind] > 0
}

// answered removes the oldest request.
func (f *inFlight) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) > 0 {
		f.cost -= f.list[0].cost
		f.count[f.list[0].kind]--
		f.list = f.list[1:]
	}
	f.changed.Broadcast()
}

// answersFollow reports whether the answer after that of the oldest request needs nothing more
// from the client, and is a short one: others have their request behind them.
func (f *inFlight) answersFollow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) > 1 {
		return f.list[1].kind == byItself && f.list[1].arrived
	}
	return f.next.arrived
}

// close ends add.
func (f *inFlight) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.changed.Broadcast()
}
