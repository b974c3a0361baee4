package auth

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	v1 "berth/api/v1"
)

// Limits on the requests that start or create one container, sent with tokens that are
// limited to containers. The work is the engine's, so no limit of the container bounds it.
const (
	startGap   = 30 * time.Second // between two requests in the long run
	startBurst = 20               // requests at once
	startKeys  = 4096             // containers that are counted separately
)

// StartLimiter refuses requests that start or create a container too often. It counts those
// of all tokens that are limited to containers together, because a tenant may have many.
// Other tokens are never refused.
type StartLimiter struct {
	mu sync.Mutex
	by map[string]*rate.Limiter // by internal_id; the empty one is that of all others
}

// NewStartLimiter returns a StartLimiter that has counted nothing.
func NewStartLimiter() *StartLimiter { return &StartLimiter{by: map[string]*rate.Limiter{}} }

// Take counts a request of p that starts or creates a container. It returns a
// *v1.RetryError if there were too many.
func (l *StartLimiter) Take(p Principal, container string) error {
	if !p.Restricted() || !p.CanAccess(container) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	turn := l.limiterOf(container, now).ReserveN(now, 1)
	left := turn.DelayFrom(now)
	if left == 0 {
		return nil
	}
	turn.CancelAt(now)
	return &v1.RetryError{After: left, Refused: v1.Errorf(v1.TooManyStarts,
		"Container was started too often with tokens like this one: at most %d times at once, then every %s; try again in %s",
		startBurst, startGap, max(left, time.Second).Round(time.Second))}
}

// limiterOf returns the limiter of a container. It forgets those that count nothing any
// more when there are too many.
func (l *StartLimiter) limiterOf(container string, now time.Time) *rate.Limiter {
	if l.by[container] == nil && len(l.by) >= startKeys {
		for id, known := range l.by {
			if known.TokensAt(now) >= startBurst {
				delete(l.by, id)
			}
		}
		if len(l.by) >= startKeys {
			container = ""
		}
	}
	if l.by[container] == nil {
		l.by[container] = rate.NewLimiter(rate.Every(startGap), startBurst)
	}
	return l.by[container]
}
