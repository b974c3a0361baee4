package berthtest

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
