package controller

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// limiter is a work queue's rate limiter: one backoff schedule per failing key.
type limiter struct {
	fresh func() backoff.BackOff // never returns backoff.Stop: see BackOff

	mu      sync.Mutex
	failing map[string]schedule
	rounds  map[string]int // steps in a row, of keys that took one after the other
}

func newLimiter(fresh func() backoff.BackOff) *limiter {
	return &limiter{fresh: fresh, failing: map[string]schedule{}, rounds: map[string]int{}}
}

// requeue counts one more step in a row, and says whether there are too many. A
// step that succeeds ends the failures before it.
func (l *limiter) requeue(key string) (tooOften bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rounds[key]++
	if l.rounds[key] > mostAgain {
		return true
	}
	delete(l.failing, key)
	return false
}

type schedule struct {
	backoff.BackOff
	failures int
}

// When is how long to wait after one more failure of key.
func (l *limiter) When(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.failing[key]
	if !ok {
		s.BackOff = l.fresh()
	}
	s.failures++
	l.failing[key] = s
	return s.NextBackOff()
}

// Forget starts key's schedule anew.
func (l *limiter) Forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failing, key)
	delete(l.rounds, key)
}

// NumRequeues counts the failures of key since it was last forgotten.
func (l *limiter) NumRequeues(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing[key].failures
}

// BackOff makes schedules that double from initial to longest, with jitter,
// and never end.
func BackOff(initial, longest time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff {
		return backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(initial),
			backoff.WithMaxInterval(longest),
			backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0.2),
			backoff.WithMaxElapsedTime(0),
		)
	}
}
