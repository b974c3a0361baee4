package server

import (
	"context"
	"slices"
	"sync"

	"berth/api/server/edge"
)

// limits bound the operations of one kind.
type limits struct {
	total     int // running at once
	perVolume int // running at once on one volume
	perToken  int // running at once with one minted token
	waiting   int // queued for one volume, and for one token
}

// limiter is a semaphore with limits per volume and per token. A request without a
// permit waits in a queue; a released permit goes to the first one whose volume
// and token are below their limits. A nil limiter has no limits.
type limiter struct {
	limits limits

	mu    sync.Mutex
	used  int
	by    map[string]*load // by volume and by token; entries of zero are removed
	queue []*waiter
}

// load counts the permits and the queued requests of one volume or token.
type load struct{ used, waiting int }

// waiter is a request for a permit.
type waiter struct {
	volume, token string
	granted       chan struct{} // closed when the permit is granted
}

func newLimiter(l limits) *limiter { return &limiter{limits: l, by: map[string]*load{}} }

// enter waits for a permit until ctx ends, and returns the function that releases
// it. It returns edge.ErrOperations if the queue of the volume or token is full. token
// is the id of a minted token; the configured token has the empty id and no limit
// per token, because it serves many users.
func (l *limiter) enter(ctx context.Context, volume, token string) (leave func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	w := &waiter{volume: volume, token: token, granted: make(chan struct{})}
	leave = sync.OnceFunc(func() { l.leave(w) })
	if granted, err := l.ask(w); err != nil {
		return func() {}, err
	} else if granted {
		return leave, nil
	}
	select {
	case <-w.granted:
		return leave, nil
	case <-ctx.Done():
		if !l.forget(w) {
			leave()
		}
		return func() {}, ctx.Err()
	}
}

// enter waits for a permit of each limiter. The caller must call leave even if
// enter returns an error.
func enter(ctx context.Context, volume, token string, all ...*limiter) (leave func(), err error) {
	var leaves []func()
	leave = func() {
		for _, one := range leaves {
			one()
		}
	}
	for _, l := range all {
		one, err := l.enter(ctx, volume, token)
		leaves = append(leaves, one)
		if err != nil {
			return leave, err
		}
	}
	return leave, nil
}

// ask grants w a permit, or queues it, or returns edge.ErrOperations.
func (l *limiter) ask(w *waiter) (granted bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fits(w) {
		l.grant(w)
		return true, nil
	}
	for _, one := range l.loads(w) {
		if one.waiting >= l.limits.waiting {
			l.clean(w)
			return false, edge.ErrOperations
		}
	}
	for _, one := range l.loads(w) {
		one.waiting++
	}
	l.queue = append(l.queue, w)
	return false, nil
}

// loads returns the loads that w counts for: its volume's, then its token's.
func (l *limiter) loads(w *waiter) (list []*load) {
	for _, key := range w.keys() {
		one := l.by[key]
		if one == nil {
			one = &load{}
			l.by[key] = one
		}
		list = append(list, one)
	}
	return list
}

func (w *waiter) keys() []string {
	if w.token == "" {
		return []string{"volume " + w.volume}
	}
	return []string{"volume " + w.volume, "token " + w.token}
}

func (l *limiter) fits(w *waiter) bool {
	loads := l.loads(w)
	return l.used < l.limits.total && loads[0].used < l.limits.perVolume &&
		(len(loads) == 1 || loads[1].used < l.limits.perToken)
}

func (l *limiter) grant(w *waiter) {
	l.used++
	for _, one := range l.loads(w) {
		one.used++
	}
	close(w.granted)
}

// leave releases the permit of w, and grants permits to the queued requests that
// fit now.
func (l *limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used--
	for _, one := range l.loads(w) {
		one.used--
	}
	l.clean(w)
	l.queue = slices.DeleteFunc(l.queue, func(next *waiter) bool {
		if !l.fits(next) {
			return false
		}
		l.grant(next)
		for _, one := range l.loads(next) {
			one.waiting--
		}
		return true
	})
}

// forget removes w from the queue, and reports whether it was still queued.
func (l *limiter) forget(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, w)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	for _, one := range l.loads(w) {
		one.waiting--
	}
	l.clean(w)
	return true
}

// clean removes the loads of w that are zero.
func (l *limiter) clean(w *waiter) {
	for _, key := range w.keys() {
		if one := l.by[key]; one != nil && *one == (load{}) {
			delete(l.by, key)
		}
	}
}
