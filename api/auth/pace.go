package auth

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Limits on the mutating requests of a minted token, with the tokens minted with it.
// Each request is an entry of the audit log, which has a maximum: a token must not be
// able to replace the log's content at once.
const (
	paceGap   = 10 * time.Millisecond // between two requests in the long run
	paceBurst = 20 * time.Second      // that a token may be ahead: 2,000 requests
	paceFault = 5                     // requests that a refused one counts as
	paceRoots = 1024                  // tokens that are counted separately
)

// Pace delays the mutating requests of minted tokens that send too many. The
// configured token is never delayed.
type Pace struct {
	burst time.Duration

	mu   sync.Mutex
	next map[string]time.Time // by the first minted token in the line of parents: when its requests so far would have been sent, one in each paceGap
}

// NewPace returns a Pace of the requests of the API.
func NewPace() *Pace { return NewPaceOf(paceBurst) }

// NewPaceOf returns a Pace whose tokens may be ahead by burst.
func NewPaceOf(burst time.Duration) *Pace { return &Pace{burst: burst, next: map[string]time.Time{}} }

// Count counts a request that p has sent. A refused one counts as several.
func (a *Pace) Count(p Principal, refused bool) {
	if p.TokenID == "" {
		return
	}
	cost := paceGap
	if refused {
		cost *= paceFault
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	root := a.counted(p.root, now)
	next := a.next[root]
	if next.Before(now) {
		next = now
	}
	a.next[root] = next.Add(cost)
}

// counted returns the key for a token: the empty one if too many are counted.
func (a *Pace) counted(root string, now time.Time) string {
	if _, known := a.next[root]; known || len(a.next) < paceRoots {
		return root
	}
	maps.DeleteFunc(a.next, func(_ string, next time.Time) bool { return next.Before(now) })
	if len(a.next) < paceRoots {
		return root
	}
	return ""
}

// Wait waits until p may send a request, or until ctx ends.
func (a *Pace) Wait(ctx context.Context, p Principal) error {
	left := a.Left(p)
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Left returns how long a request of p has to wait, at least 0.
func (a *Pace) Left(p Principal) time.Duration {
	if p.TokenID == "" {
		return 0
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(0, a.next[a.counted(p.root, now)].Sub(now.Add(a.burst)))
}
