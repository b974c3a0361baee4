package enginetest

import (
	"fmt"
	"math/rand/v2"
	"net"
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

// Within polls a condition for at most limit. It reports whether it became true. A poll is often a
// request, which takes processors from what it waits for: each pause is a twentieth of the time so
// far, from 5 to 50 ms.
func Within(limit time.Duration, done func() bool) bool {
	began := time.Now()
	for !done() {
		waited := time.Since(began)
		if waited > limit {
			return done()
		}
		time.Sleep(min(max(waited/20, 5*time.Millisecond), 50*time.Millisecond))
	}
	return true
}

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
