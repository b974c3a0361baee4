package soak_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// goodTenant starts and kills its container, over and over, and measures each start.
type goodTenant struct {
	b      *berthtest.Berth
	socket *berthtest.Socket
	next   int // index of the first message that was not read yet
	// engineUp is held for writing while the engine restarts: a start that waits
	// for the engine measures the engine.
	engineUp  sync.RWMutex
	restarted bool // the engine, since the last start
	bare      bareContainer
}

func newGoodTenant(t *testing.T, b *berthtest.Berth, engine *enginetest.Isolated) *goodTenant {
	t.Helper()
	b.Made(t, "good", berthtest.Spec{"image": engine.Busybox(t), "limits": map[string]any{"memory": 64 << 20, "cpu": 1}})
	return &goodTenant{b: b, socket: b.Listen(t, "/ws/good?tail=0"), bare: newBareContainer(t, engine)}
}

// roundTrip starts the container, kills it, does the same to the bare container, and
// returns both starts.
func (g *goodTenant) roundTrip(t *testing.T) start {
	t.Helper()
	g.engineUp.RLock()
	defer g.engineUp.RUnlock()
	s := start{began: time.Now(), afterRestart: g.restarted}
	g.restarted = false
	g.b.Verb(t, "good", "start")
	s.answered = time.Now()
	s.starting = g.awaitState(t, "starting").Read
	s.running = g.awaitState(t, "running").Read
	g.b.Verb(t, "good", "kill")
	g.awaitState(t, "exit")
	s.bare = g.bare.roundTrip(t)
	return s
}

func (g *goodTenant) awaitState(t *testing.T, state string) (m berthtest.Message) {
	t.Helper()
	m, g.next = g.socket.Event(t, g.next, "", state)
	return m
}

func (g *goodTenant) rounds(t *testing.T, n int) (l starts) {
	t.Helper()
	for range n {
		l = append(l, g.roundTrip(t))
	}
	return l
}

func (g *goodTenant) until(ctx context.Context, t *testing.T) (l starts) {
	t.Helper()
	for ctx.Err() == nil {
		l = append(l, g.roundTrip(t))
		sleep(ctx, 100*time.Millisecond)
	}
	return l
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
