package soak_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/hack/berthtest"
	"berth/hack/enginetest"
)

// goodTenant starts and kills its container, over and over, and measures each start.
type goodTenant struct {
	b      *berthtest.Berth
	socket *berthtest.Socket
	next   int // index of the first message that was not read yet
	// engineUp is held for writing while the engine restarts: a start that waits
	// for the engine measures the engine.
	engineUp sync.RWMutex
}

func newGoodTenant(t *testing.T, b *berthtest.Berth, engine *enginetest.Isolated) *goodTenant {
	t.Helper()
	b.Made(t, "good", berthtest.Spec{"image": engine.Busybox(t), "limits": map[string]any{"memory": 64 << 20, "cpu": 1}})
	return &goodTenant{b: b, socket: b.Listen(t, "/ws/good?tail=0")}
}

// roundTrip starts the container, kills it, and returns how long the start took.
func (g *goodTenant) roundTrip(t *testing.T) time.Duration {
	t.Helper()
	g.engineUp.RLock()
	defer g.engineUp.RUnlock()
	began := time.Now()
	g.b.Verb(t, "good", "start")
	running := g.awaitState(t, "running")
	g.b.Verb(t, "good", "kill")
	g.awaitState(t, "exit")
	return running.Read.Sub(began)
}

func (g *goodTenant) awaitState(t *testing.T, state string) (m berthtest.Message) {
	t.Helper()
	m, g.next = g.socket.Event(t, g.next, "", state)
	return m
}

func (g *goodTenant) rounds(t *testing.T, n int) (l latencies) {
	t.Helper()
	for range n {
		l = append(l, g.roundTrip(t))
	}
	return l
}

func (g *goodTenant) until(ctx context.Context, t *testing.T) (l latencies) {
	t.Helper()
	for ctx.Err() == nil {
		l = append(l, g.roundTrip(t))
		sleep(ctx, 100*time.Millisecond)
	}
	return l
}

// latencies are durations of the same operation.
type latencies []time.Duration

func (l latencies) quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(l))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func (l latencies) ratio(base latencies) float64 {
	return float64(l.quantile(0.99)) / float64(base.quantile(0.99))
}

// String is the count, the median and the 99th percentile.
func (l latencies) String() string {
	return fmt.Sprintf("n=%d p50=%s p99=%s", len(l),
		l.quantile(0.5).Round(time.Millisecond), l.quantile(0.99).Round(time.Millisecond))
}

// sleep paces an attack: it waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
