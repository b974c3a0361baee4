package berthtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Until polls a condition that another process makes true. It fails the test,
// and ends it, when limit has passed.
func Until(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	if !Within(limit, done) {
		t.Fatalf("waited %s in vain: %s", limit, what)
	}
}

// Within polls a condition until limit has passed, and says whether it came true.
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

// ports remembers which ports were given out, so that none is given twice.
var ports = struct {
	sync.Mutex
	given map[int]bool
}{given: map[int]bool{}}

// FreePort is a port of 127.0.0.1 that is free, below those that the kernel
// gives to clients.
func FreePort(t testing.TB) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		if !ports.given[port] {
			ports.given[port] = true
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}
