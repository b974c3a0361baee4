package auth

import (
	"context"
	"errors"
	"sync"
	"time"

	"berth/api/limit"
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

// verifyEvery is how often open sessions are verified. A session ends within a second of its
// token, so it is half of that.
const verifyEvery = 500 * time.Millisecond

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
	slots    *limit.Slots

	mu     sync.Mutex // held during End, and never during a call of the store
	set    map[*Session]struct{}
	closed bool
	all    sync.WaitGroup
}

// NewSessions returns an empty Sessions. It ends no session until Run.
func NewSessions(s *store.Store, settings Settings) *Sessions {
	return &Sessions{store: s, settings: settings, slots: limit.NewSlots(limit.Sessions),
		set: map[*Session]struct{}{}}
}

// Begin adds a session. The caller must call done when the session has ended. Begin
// returns the errors of Verify and of the session's Check, ErrShutdown, and errors of
// the code TooManySessions.
func (r *Sessions) Begin(k *Session) (done func(), err error) {
	leave, err := r.enter(k)
	if err != nil {
		return nil, err
	}
	if err := r.add(k); err != nil {
		leave()
		return nil, err
	}
	done = sync.OnceFunc(func() {
		r.remove(k)
		leave()
	})
	// Verify after add: Run sees every later change.
	ends, err := r.failing([]*Session{k})
	if err == nil {
		err = ends[k]
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// enter counts a session, or returns an error of the code TooManySessions.
func (r *Sessions) enter(k *Session) (leave func(), err error) {
	leave, err = r.slots.Enter(context.Background(), limit.Claim{Tenant: k.Principal.Tenant(), Object: k.Container})
	b := limit.Sessions()
	switch {
	case err == nil:
	case k.Principal.TokenID == "":
		err = v1.Errorf(v1.TooManySessions, "container or node has too many open sockets: close some")
	case errors.Is(err, limit.ErrTenant):
		err = v1.Errorf(v1.TooManySessions, "Token has %d open sockets and transfers, the most for one token: close some", b.Tenant)
	case errors.Is(err, limit.ErrObject):
		err = v1.Errorf(v1.TooManySessions, "Container has %d open sockets, the most for minted tokens: close some", b.Object-b.Kept)
	default:
		err = v1.Errorf(v1.TooManySessions, "Minted tokens have %d open sockets and transfers, the most in all: try again later", b.All-b.All/10)
	}
	return leave, err
}

func (r *Sessions) add(k *Session) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrShutdown
	}
	r.set[k] = struct{}{}
	r.all.Add(1)
	return nil
}

func (r *Sessions) remove(k *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.set, k)
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

// Run ends invalid sessions until ctx ends.
func (r *Sessions) Run(ctx context.Context) {
	tick := time.NewTicker(verifyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.verify()
		}
	}
}

// verify ends the sessions that are no longer valid. If the store cannot be read, it
// ends none.
func (r *Sessions) verify() {
	ends, err := r.failing(r.open())
	if err != nil {
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
	c, tx := r.settings.Current().Authorization, r.store.Read()
	ends = map[*Session]error{}
	for _, k := range list {
		p, err := k.Principal.Verify(tx, c)
		if err == nil && k.Check != nil {
			err = k.Check(tx, p)
		}
		if errors.Is(err, store.ErrFailed) {
			return ends, err
		}
		if err != nil {
			ends[k] = err
		}
	}
	return ends, nil
}
