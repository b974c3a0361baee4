package controller

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// BackOff is the time between two attempts: it doubles with each failure in a row.
type BackOff struct{ Initial, Max time.Duration }

// New returns a schedule that begins anew. It has jitter, so that those that failed together do
// not try together, and no end.
func (b BackOff) New() backoff.BackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(b.Initial), backoff.WithMaxInterval(b.Max),
		backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.2), backoff.WithMaxElapsedTime(0))
}

// After returns the time after so many failures before the last one, without jitter: for those
// that are counted elsewhere.
func (b BackOff) After(failures int) time.Duration {
	d := b.Initial
	for ; failures > 0 && d < b.Max; failures-- {
		d *= 2
	}
	return min(d, b.Max)
}

// limiter is the rate limiter of a work queue: it has one schedule for each failing key.
type limiter struct {
	backOff BackOff

	mu      sync.Mutex
	failing map[string]schedule
}

type schedule struct {
	backoff.BackOff
	failures int
}

// When counts one more failure of a key, and returns how long to wait.
func (l *limiter) When(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, failed := l.failing[key]
	if !failed {
		s.BackOff = l.backOff.New()
	}
	s.failures++
	l.failing[key] = s
	return s.NextBackOff()
}

// Forget resets the failures of a key.
func (l *limiter) Forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failing, key)
}

// NumRequeues returns the number of failures of a key since the last reset.
func (l *limiter) NumRequeues(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing[key].failures
}
