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
