package sftp

import "sync"

// Memory of the requests in flight and of their answers, in bytes.
const (
	maxInFlight = 264 << 10 // of a session: writes of 32 KiB for each of the 8 goroutines of pkg/sftp
	readCost    = 32 << 10  // of the answer to a read
	listCost    = 64 << 10  // of the answer to the request for entries of a folder
)

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
	cost    int     // of all
	count   [3]int  // by class
	next    request // waits
	closed  bool
}

// request is what decides when a request is passed on.
type request struct {
	class   class
	closes  bool // a file or a folder
	arrived bool // whole: it needs nothing more from the client
	cost    int  // bytes of memory, with its answer
}

// class is what pkg/sftp does with a request.
type class int

const (
	other    class = iota // it is carried out after the others before it
	content               // a read or a write, which is carried out beside other ones
	appended              // a write to the end of a file, which must be carried out alone
)

// newRequest returns a request of a type and a length in bytes. inOrder reports whether content is
// appended, arrived whether the whole request has arrived.
func newRequest(kind byte, length int, inOrder, arrived bool) request {
	r := request{cost: length, closes: kind == typeClose, arrived: arrived}
	switch {
	case kind == typeRead:
		r.class, r.cost = content, length+readCost
	case kind == typeWrite && inOrder:
		r.class = appended
	case kind == typeWrite:
		r.class = content
	case kind == typeReaddir:
		r.cost = length + listCost
	}
	return r
}

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
	f.count[r.class]++
	f.list = append(f.list, r)
	return true
}

func (f *inFlight) waits(r request) bool {
	switch {
	case r.closes:
		return false
	case r.class == appended, f.count[appended] > 0:
		return true
	case r.class == content:
		return f.count[other] > 0
	}
	return f.count[content] > 0
}

// answered removes the oldest request.
func (f *inFlight) answered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) > 0 {
		f.cost -= f.list[0].cost
		f.count[f.list[0].class]--
		f.list = f.list[1:]
	}
	f.changed.Broadcast()
}

// answersFollow reports whether the answer after that of the oldest request needs nothing more
// from the client. It returns false after close.
func (f *inFlight) answersFollow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return false
	case len(f.list) > 1:
		return f.list[1].arrived
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
