package controller

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// limiter is the rate limiter of a work queue: it holds one backoff schedule per
// failing key.
type limiter struct {
	newBackOff func() backoff.BackOff // its schedules never return backoff.Stop; see BackOff

	mu      sync.Mutex
	failing map[string]schedule
}

type schedule struct {
	backoff.BackOff
	failures int
}

// When counts one more failure of key and returns how long to wait.
func (l *limiter) When(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.failing[key]
	if !ok {
		s.BackOff = l.newBackOff()
	}
	s.failures++
	l.failing[key] = s
	return s.NextBackOff()
}

// Forget resets the failures of key.
func (l *limiter) Forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failing, key)
}

// NumRequeues returns the number of failures of key since the last reset.
func (l *limiter) NumRequeues(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing[key].failures
}

// BackOff returns a constructor of backoff schedules that double from initial to
// longest, with jitter, and never end.
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

// Doubled returns initial doubled n times, at most longest: the backoff without
// jitter of a schedule whose failures are stored elsewhere.
func Doubled(initial, longest time.Duration, n int) time.Duration {
	for ; n > 0 && initial < longest; n-- {
		initial *= 2
	}
	return min(initial, longest)
}
