package berthtest

import (
	"testing"
	"time"

	"berth/hack/test/enginetest"
)

// Until is enginetest.Until.
func Until(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	enginetest.Until(t, limit, what, done)
}

// Within is enginetest.Within.
func Within(limit time.Duration, done func() bool) bool { return enginetest.Within(limit, done) }

// FreePort is enginetest.FreePort.
func FreePort(t testing.TB) int {
	t.Helper()
	return enginetest.FreePort(t)
}
