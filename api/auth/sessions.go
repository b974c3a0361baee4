package auth

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// Settings is the active configuration.
type Settings interface {
	Current() v1.Config
	// Changed returns a channel that is closed when Current has changed.
	Changed() <-chan struct{}
}

// Reasons why a session ends, besides ErrRevoked and ErrExpired.
var (
	ErrGone     = errors.New("container is deleted")
	ErrShutdown = errors.New("shutting down")
)

// ErrEnded is the error of Replace for a session that has ended.
var ErrEnded = errors.New("session has ended")

// Session is work that lasts longer than the check of its request's token: a socket,
// a download, an upload.
type Session struct {
	Principal Principal
	Container string // internal_id of the container that it listens to; empty: none

	// Check returns the reason if the session must end although its token is valid.
	// p is the current principal. A nil Check always passes.
	Check func(tx *store.Tx, p Principal) error

	// End ends the session for a reason. It is called at most once, and not after
	// the session is done. It must not block or call a method of Sessions.
	End func(reason error)

	ended bool
}

// Sessions is the set of open sessions. Within a second it ends those whose token is
// revoked, replaced or expired, and those whose Check fails.
type Sessions struct {
	store    *store.Store
	settings Settings
	dirty    chan struct{} // a record or setting has changed that sessions depend on
	opened   chan struct{} // a session was added

	mu     sync.Mutex // held during End, and never during a call of the store
	set    map[*Session]struct{}
	counts counts
	closed bool
	all    sync.WaitGroup
}

// NewSessions returns an empty Sessions. It ends no session until Run.
func NewSessions(s *store.Store, settings Settings) *Sessions {
	return &Sessions{store: s, settings: settings, dirty: make(chan struct{}, 1), opened: make(chan struct{}, 1), set: map[*Session]struct{}{}, counts: newCounts()}
}

// Begin adds a session. The caller must call done when the session has ended. Begin
// returns the errors of Verify and of the session's Check, ErrShutdown, and errors of
// the code TooManySessions.
func (r *Sessions) Begin(k *Session) (done func(), err error) {
	if err := r.add(k); err != nil {
		return nil, err
	}
	// Verify after add: Run observes every later change.
	ends, err := r.failing([]*Session{k})
	if err == nil && len(ends) > 0 {
		err = ends[k]
	}
	if err != nil {
		r.remove(k)
		return nil, err
	}
	return sync.OnceFunc(func() { r.remove(k) }), nil
}

// Replace puts next, which has another token, in the place of an open session: it
// returns the done of next, and that of k must not be called any more. After an error,
// of those of Begin or ErrEnded, k goes on.
func (r *Sessions) Replace(k, next *Session) (done func(), err error) {
	ends, err := r.failing([]*Session{next})
	if err == nil && len(ends) > 0 {
		err = ends[next]
	}
	if err == nil {
		err = r.swap(k, next)
	}
	if err != nil {
		return nil, err
	}
	r.changed("") // Run verifies next again: its token may have ended before the swap
	return sync.OnceFunc(func() { r.remove(next) }), nil
}

func (r *Sessions) swap(k, next *Session) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.set[k]; !open || k.ended {
		return ErrEnded
	}
	r.counts.remove(k)
	if err := r.counts.add(next); err != nil {
		r.counts.restore(k)
		return err
	}
	delete(r.set, k)
	r.set[next] = struct{}{}
	return nil
}

func (r *Sessions) add(k *Session) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrShutdown
	}
	if err := r.counts.add(k); err != nil {
		return err
	}
	r.set[k] = struct{}{}
	r.all.Add(1)
	select {
	case r.opened <- struct{}{}:
	default: // it was not received yet
	}
	return nil
}

func (r *Sessions) remove(k *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.set, k)
	r.counts.remove(k)
	r.all.Done()
}

// Len returns the number of open sessions.
func (r *Sessions) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.set)
}

// Close ends every session with ErrShutdown, and refuses new ones.
func (r *Sessions) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for _, k := range r.open() {
		r.end(k, ErrShutdown)
	}
}

// Wait waits until no session is open or ctx ends.
func (r *Sessions) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		r.all.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open returns the sessions that were not ended yet.
func (r *Sessions) open() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*Session, 0, len(r.set))
	for k := range r.set {
		if !k.ended {
			list = append(list, k)
		}
	}
	return list
}

func (r *Sessions) end(k *Session, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.set[k]; open && !k.ended {
		k.ended = true
		k.End(reason)
	}
}

// How often expiry is checked, and for how long changes are collected before the
// sessions are verified again, which bounds the cost of many changes.
const (
	expiryEvery = 250 * time.Millisecond
	gatherFor   = 50 * time.Millisecond
)

// Run ends invalid sessions until ctx ends or the store is closed. It watches tokens,
// containers, volumes, restores and the configuration. It polls for expiry, because the
// host's clock may be set.
func (r *Sessions) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var sources sync.WaitGroup
	defer sources.Wait()
	defer cancel()
	sources.Go(func() { _ = store.Tokens.Source(r.store, store.SpecChanged, store.Purged)(ctx, r.changed) })
	sources.Go(func() { _ = store.Containers.Source(r.store, store.SpecChanged, store.Purged)(ctx, r.changed) })
	sources.Go(func() { _ = store.Volumes.Source(r.store, store.SpecChanged, store.Purged)(ctx, r.changed) })
	sources.Go(func() { _ = store.Restores.Source(r.store, store.SpecChanged)(ctx, r.changed) })
	var expiry <-chan time.Time
	for {
		settings := r.settings.Changed()
		r.verify()
		gather := time.After(gatherFor)
		for again := false; !again; {
			if expiry == nil && r.Len() > 0 { // without sessions nobody is woken
				expiry = time.After(expiryEvery)
			}
			select {
			case <-ctx.Done():
				return
			case <-r.opened:
			case <-expiry:
				expiry = nil
				r.expire()
			case <-settings:
				again = true
			case <-r.dirty:
				again = true
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-gather:
		}
	}
}

func (r *Sessions) changed(string) {
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

// verify ends the sessions that are no longer valid. If the store cannot be read, it
// ends none and requests another verification.
func (r *Sessions) verify() {
	list := r.open()
	ends, err := r.failing(list)
	if err != nil {
		r.changed("")
		return
	}
	for k, reason := range ends {
		r.end(k, reason)
	}
}

// failing returns the sessions of list that must end, each with the reason. It
// returns an error if the store cannot be read.
func (r *Sessions) failing(list []*Session) (ends map[*Session]error, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	c := r.settings.Current().Authorization
	ends = map[*Session]error{}
	err = r.store.View(func(tx *store.Tx) error {
		for _, k := range list {
			p, err := k.Principal.Verify(tx, c)
			if err == nil && k.Check != nil {
				err = k.Check(tx, p)
			}
			if errors.Is(err, store.ErrFailed) {
				return err
			}
			if err != nil {
				ends[k] = err
			}
		}
		return nil
	})
	return ends, err
}

// expire ends the sessions whose token has expired.
func (r *Sessions) expire() {
	list := r.open()
	if len(list) == 0 {
		return
	}
	var now time.Time
	err := r.store.View(func(tx *store.Tx) error {
		now = tx.Now()
		return nil
	})
	if err != nil {
		return
	}
	for _, k := range list {
		if at := k.Principal.ExpiresAt; !at.IsZero() && !now.Before(at) {
			r.end(k, ErrExpired)
		}
	}
}
