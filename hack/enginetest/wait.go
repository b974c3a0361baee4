package enginetest

import (
	"testing"
	"time"
)

// until polls a condition. After limit it fails the test and ends it.
func until(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	if !within(limit, done) {
		t.Fatalf("timed out after %s waiting until %s", limit, what)
	}
}

// within polls a condition for at most limit. It reports whether it became true.
func within(limit time.Duration, done func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(limit)
	defer late.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late.C:
			return done()
		}
	}
	return true
}
