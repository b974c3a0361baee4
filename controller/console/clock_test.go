package console_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	"berth/controller/console"
	"berth/runtime"
)

// printAt prints lines with the time of another clock.
func (e *engine) printAt(id string, at time.Time, data ...string) {
	e.change(id, func(c *container) {
		for i, d := range data {
			c.lines = append(c.lines, runtime.Line{Time: at.Add(time.Duration(i)), Data: []byte(d)})
		}
	})
}

// Output after the clock was set back by an hour is stored once, also output that is
// printed while the engine is unreachable.
func TestClockSetBackInRun(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		e.printAt("c1", time.Now().Add(time.Hour), "a", "b")
		m.Follow(target("c1"))
		synctest.Wait()
		e.printAt("c1", time.Now(), "c", "d")
		synctest.Wait()
		away(t, e, m, "c1", func() { e.printAt("c1", time.Now(), "e") })
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, texts(t, h, "mc"))
		away(t, e, m, "c1", func() { e.printAt("c1", time.Now(), "f") })
		require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, texts(t, h, "mc"))
	})
}

func TestClockSetBackBetweenContainers(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		old := target("c1")
		e.printAt("c1", time.Now().Add(time.Hour), "a", "b")
		m.Follow(old)
		e.end("c1")
		require.NoError(t, m.Drain(t.Context(), old))
		e.remove("c1")
		next := target("c2")
		e.printAt("c2", time.Now(), "c", "d")
		m.Follow(next)
		synctest.Wait()
		away(t, e, m, "c2", func() { e.printAt("c2", time.Now(), "e") })
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, texts(t, h, "mc"))
		time.Sleep(2 * time.Hour) // the clock has caught up, and nothing was printed
		away(t, e, m, "c2", func() { e.printAt("c2", time.Now(), "f") })
		require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, texts(t, h, "mc"))
	})
}

// away makes the engine unreachable for some seconds.
func away(t *testing.T, e *engine, m *console.Manager, id string, meanwhile func()) {
	t.Helper()
	down := func(err error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.down = err
	}
	down(runtime.ErrUnavailable)
	e.cut(id)
	time.Sleep(5 * time.Second)
	meanwhile()
	time.Sleep(5 * time.Second)
	down(nil)
	time.Sleep(time.Minute) // all backoffs are over
	synctest.Wait()
}

// TestClockSetBackDuringStart requires that the start pattern is found, and not in the
// output of an earlier run.
func TestClockSetBackDuringStart(t *testing.T) {
	for name, c := range map[string]struct{ recorded, started, printed time.Duration }{ // from now
		"before the engine starts it": {time.Hour, 0, time.Second},
		"before it prints":            {time.Hour, time.Hour + time.Second, 0},
		"while it prints":             {-2 * time.Second, -time.Second, -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
				now := time.Now()
				tgt := target("c1")
				tgt.Pattern, tgt.From, tgt.StartedAt = "^Done", now.Add(c.recorded), now.Add(c.started)
				e.change("c1", func(*container) {})
				if c.recorded < 0 {
					e.printAt("c1", now.Add(c.recorded), "loading")
				}
				m.Follow(tgt)
				synctest.Wait()
				require.False(t, matched(m, tgt))
				e.printAt("c1", now.Add(c.printed), "Done")
				synctest.Wait()
				require.True(t, matched(m, tgt))
			})
		})
	}
}
