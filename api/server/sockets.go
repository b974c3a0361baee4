package server

import (
	"context"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store"
)

// sockets is every open WebSocket.
type sockets struct {
	open prometheus.Gauge
	all  sync.WaitGroup

	mu      sync.Mutex
	set     map[*socket]struct{}
	closing bool
}

func newSockets(open prometheus.Gauge) *sockets {
	return &sockets{open: open, set: map[*socket]struct{}{}}
}

// add takes a socket in, unless the server is closing.
func (r *sockets) add(k *socket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	r.set[k] = struct{}{}
	r.all.Add(1)
	r.open.Inc()
	return true
}

func (r *sockets) remove(k *socket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.set, k)
	r.all.Done()
	r.open.Dec()
}

func (r *sockets) none() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.set) == 0
}

// closeAll ends every socket, and takes no more.
func (r *sockets) closeAll() {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	r.end(websocket.CloseGoingAway, "shutting down", func(*socket) bool { return true })
}

// end closes the sockets that match, without waiting for them.
func (r *sockets) end(code int, reason string, match func(*socket) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.set {
		if match(k) {
			k.stop(code, reason)
		}
	}
}

// wait returns when every socket is closed, or ctx ends.
func (r *sockets) wait(ctx context.Context) error {
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

// recheckEvery is how often the sockets' tokens and containers are looked at.
const recheckEvery = 2 * time.Second

// watch closes the sockets whose token is no longer valid or whose container is
// gone, until ctx ends.
func (s listening) watch(ctx context.Context) {
	tick := time.NewTicker(recheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.recheck()
		}
	}
}

// recheck looks at the token and the container of every socket.
func (s listening) recheck() {
	if s.sockets.none() {
		return
	}
	tokens, containers := map[string]bool{"": true}, map[string]bool{"": true}
	var now time.Time
	err := s.store.View(func(tx *store.Tx) error {
		now = tx.Now()
		for _, id := range store.Tokens.IDs(tx) {
			tokens[id] = true
		}
		for _, id := range store.Containers.IDs(tx) {
			containers[id] = true
		}
		return nil
	})
	if err != nil {
		return // nothing is known of them now
	}
	auth := s.settings.Current().Authorization
	s.sockets.end(websocket.ClosePolicyViolation, "token is revoked", func(k *socket) bool {
		return !tokens[k.tokenID] || k.configured != "" && auth.Enabled && k.configured != auth.Token
	})
	// Each socket has a timer for this; but a timer knows nothing of a clock that was set.
	s.sockets.end(websocket.ClosePolicyViolation, "token has expired", func(k *socket) bool {
		return k.caller.TokenID != "" && !now.Before(k.caller.ExpiresAt)
	})
	s.sockets.end(websocket.CloseNormalClosure, "container is deleted", func(k *socket) bool { return !containers[k.container] })
}

// configuredToken is the token in force of a caller who has presented it.
func (s listening) configuredToken(tokenID string) v1.Secret {
	auth := s.settings.Current().Authorization
	if tokenID != "" || !auth.Enabled {
		return ""
	}
	return auth.Token
}
