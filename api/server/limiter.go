package server

import (
	"context"
	"slices"
	"sync"

	v1 "berth/api/v1"
)

// errOperations is 429: the client may send the request again.
var errOperations = &v1.Error{Code: "too_many_operations",
	Message: "Too many operations of this kind are in flight or wait for this volume or token; send the request again when one of them has ended"}

// limits bound the operations of one kind.
type limits struct {
	total     int // in flight at once
	perVolume int // of these on one volume
	perToken  int // of these with one minted token
	waiting   int // that wait for a permit, of one volume and of one token
}

// limiter gives permits for operations; a nil one has a permit for all. A request without a permit waits in a
// queue; the first one whose volume and token are below their bounds is next.
type limiter struct {
	limits limits

	mu    sync.Mutex
	used  int
	by    map[string]*load // by volume and by token; none is empty
	queue []*waiter
}

// load is what one volume or one token has of a limiter.
type load struct{ used, waiting int }

// waiter is a request without a permit.
type waiter struct {
	volume, token string
	granted       chan struct{} // closed when it has its permit
}

func newLimiter(l limits) *limiter { return &limiter{limits: l, by: map[string]*load{}} }

// enter waits for a permit until ctx ends. It is errOperations if too many
// requests wait already. Token is the id of a minted one: the configured token
// stands for many users, and is bounded by volume and in total alone.
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

// enter waits for a permit of each limiter.
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

// ask gives w a permit, or a place in the queue, or neither.
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
			return false, errOperations
		}
	}
	for _, one := range l.loads(w) {
		one.waiting++
	}
	l.queue = append(l.queue, w)
	return false, nil
}

// loads are those that w counts for.
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

// leave gives the permit of w back, and to whom it is next.
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

// forget takes w out of the queue, and reports whether it was in there still.
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

// clean forgets what has neither permits nor requests that wait.
func (l *limiter) clean(w *waiter) {
	for _, key := range w.keys() {
		if one := l.by[key]; one != nil && *one == (load{}) {
			delete(l.by, key)
		}
	}
}
