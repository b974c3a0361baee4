package server

import "sync"

// queues let one at a time pass, for each name. The zero value is ready to use.
type queues struct {
	mu  sync.Mutex
	all map[string]*queue
}

type queue struct {
	mu    sync.Mutex
	users int // that wait or have passed; the queue goes with the last
}

// enter waits until the one before has left.
func (q *queues) enter(name string) (leave func()) {
	q.mu.Lock()
	if q.all == nil {
		q.all = map[string]*queue{}
	}
	one := q.all[name]
	if one == nil {
		one = &queue{}
		q.all[name] = one
	}
	one.users++
	q.mu.Unlock()
	one.mu.Lock()
	return func() {
		one.mu.Unlock()
		q.mu.Lock()
		defer q.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(q.all, name)
		}
	}
}
