package berthtest

import (
	"fmt"
	"math/rand/v2"
	"net"
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

// FreePort returns a free port of 127.0.0.1, below those that the kernel assigns to
// clients. Until the test ends, no test on this machine gets the same port.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		reservation, err := net.Listen("unix", fmt.Sprintf("@berthtest/port/%d", port))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			_ = reservation.Close()
			continue
		}
		_ = l.Close()
		t.Cleanup(func() { _ = reservation.Close() })
		return port
	}
	t.Fatal("no free port")
	return 0
}
