package console_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	"berth/controller/console"
	"berth/runtime"
)

// TestRandomFailuresLoseNothing kills berth, cuts streams, has them repeat lines and makes the engine
// unreachable at random, while a container prints and is restarted and re-created. The
// journal has every line once and in order.
func TestRandomFailuresLoseNothing(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testRandomFailures(t, rand.New(rand.NewPCG(seed, 5))) })
	}
}

func testRandomFailures(t *testing.T, dice *rand.Rand) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.newer = dice.IntN(2) == 0
		w := &world{t: t, e: e, dir: dir, tgt: target("c0")}
		e.print("c0")
		w.boot()
		defer func() { w.kill() }()
		for range 400 {
			w.step(dice)
		}
		w.reconnect()
		time.Sleep(time.Minute)
		got := texts(t, w.hub, "mc")
		require.Empty(t, slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.Contains(s, "missing") }))
		require.Equal(t, w.want[max(0, len(w.want)-10_000):], got)
	})
}

// world is a berth with an engine, and the output that was printed.
type world struct {
	t    *testing.T
	e    *engine
	dir  string
	tgt  console.Target
	want []string
	hub  *stream.Hub
	m    *console.Manager
	kill func()
}

func (w *world) boot() {
	w.hub = stream.New(w.dir, stream.Options{})
	w.m = console.New(w.e, w.hub, console.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	m := w.m
	done.Go(func() { m.Run(ctx) })
	w.kill = func() { cancel(); done.Wait() }
	w.m.Follow(w.tgt)
}

func (w *world) step(dice *rand.Rand) {
	switch dice.IntN(16) {
	case 0:
		w.e.cut(w.tgt.ContainerID)
	case 1:
		w.kill()
		w.boot()
	case 2:
		w.reconnect()
	case 3:
		w.e.mu.Lock()
		w.e.down = runtime.ErrUnavailable
		w.e.mu.Unlock()
		w.e.cut(w.tgt.ContainerID)
	case 4:
		w.restart()
	case 5:
		w.remake()
	case 6:
		time.Sleep(time.Duration(dice.Int64N(int64(3 * time.Second))))
	case 7:
		w.m.Follow(w.tgt)
	case 8:
		synctest.Wait()
	case 9:
		w.kill()
		_ = os.WriteFile(filepath.Join(w.dir, "mc", "server.run"), nil, 0o600) // a file that a power failure truncated
		w.boot()
	case 10:
		w.e.mu.Lock()
		n := len(w.e.containers[w.tgt.ContainerID].lines)
		w.e.mu.Unlock()
		if n > 1 {
			w.e.repeat(w.tgt.ContainerID, dice.IntN(n-1)) // as Docker before 23 does when it rotates a log
		}
	default:
		for range dice.IntN(20) {
			text := fmt.Sprint(len(w.want))
			w.want = append(w.want, text)
			w.e.print(w.tgt.ContainerID, text)
		}
	}
}

func (w *world) reconnect() {
	w.e.mu.Lock()
	w.e.down = nil
	w.e.mu.Unlock()
	w.m.Follow(w.tgt)
}

// restart ends the run and starts another one in the same container.
func (w *world) restart() {
	w.e.end(w.tgt.ContainerID)
	w.e.change(w.tgt.ContainerID, func(c *container) { c.ended = false })
	w.tgt.StartedAt = time.Now()
	w.m.Follow(w.tgt)
}

// remake removes the container, as the reconciler does, and creates another one.
func (w *world) remake() {
	w.reconnect()
	w.e.end(w.tgt.ContainerID)
	require.NoError(w.t, w.m.Drain(w.t.Context(), w.tgt))
	w.e.remove(w.tgt.ContainerID)
	time.Sleep(time.Millisecond)
	w.tgt = target(fmt.Sprintf("c%d", len(w.want)))
	w.e.print(w.tgt.ContainerID)
	w.m.Follow(w.tgt)
}
