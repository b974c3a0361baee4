package enginetest

import (
	"testing"
	"time"
)

// Until polls a condition that another process makes true. After limit it fails the test
// and ends it.
func Until(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	if !Within(limit, done) {
		t.Fatalf("timed out after %s: %s", limit, what)
	}
}

// Within polls a condition for at most limit. It reports whether it became true.
func Within(limit time.Duration, done func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
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
