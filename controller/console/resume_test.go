package console_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/controller/console"
	"berth/hack/test/enginetest"
	"berth/runtime"
)

// Docker before 23 repeats a log file to its followers when it rotates it.
func TestRotatedLogIsNotRepeated(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		e.change("c1", func(*container) {}) // the container exists
		m.Follow(target("c1"))
		var want []string
		for round := range 5 {
			for i := range 100 {
				want = append(want, fmt.Sprintf("round %d line %d", round, i))
				e.print("c1", want[len(want)-1], "the same")
				want = append(want, "the same")
				time.Sleep(20 * time.Millisecond)
			}
			synctest.Wait()
			e.repeat("c1", 1+20*round)
			synctest.Wait()
			e.repeat("c1", 1+20*round) // again, with nothing new between them
			synctest.Wait()
			require.Equal(t, want, texts(t, h, "mc"))
		}
		e.print("c1", "last")
		e.end("c1")
		synctest.Wait()
		require.Equal(t, append(want, "last"), texts(t, h, "mc"))
	})
}

// New lines follow the repeated ones at once, before all are written.
func TestRepetitionDuringFlood(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		e.change("c1", func(*container) {}) // the container exists
		m.Follow(target("c1"))
		var want []string
		flood := func() {
			for range 20_000 {
				want = append(want, fmt.Sprintf("line %d", len(want)))
			}
			e.print("c1", want[len(want)-20_000:]...)
		}
		for range 3 {
			flood()
			time.Sleep(time.Second)
			synctest.Wait()
			e.change("c1", func(c *container) { c.again = 1 })
			flood()
			synctest.Wait()
			requireSame(t, want, all(t, h, "mc"))
			time.Sleep(time.Second)
		}
	})
}

// all returns all lines of the journal.
func all(t *testing.T, h *stream.Hub, id string) (list []string) {
	t.Helper()
	require.NoError(t, h.Since(t.Context(), id, v1.ServerConsole, time.Time{}, func(l v1.Line) bool {
		list = append(list, string(l.Data))
		return true
	}))
	return list
}

// requireSame is require.Equal for lists that are too long to be printed.
func requireSame(t *testing.T, want, got []string) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		require.Equal(t, want[i], got[i], "line %d", i)
	}
	require.Equal(t, len(want), len(got))
}

// TestBurstsOverRotatedLogs prints 300,000 lines in three bursts into log files
// of 10 MB on a real engine, which are rotated under the pump.
func TestBurstsOverRotatedLogs(t *testing.T) {
	engine := enginetest.Shared(t)
	store, n := "console-"+uuid.NewString(), 300_000
	script := `trap go=1 USR1; for b in 0 1 2; do seq $((b*100000)) $((b*100000+99999)); while [ -z "$go" ]; do usleep 10000; done; go=; done; sleep 100000`
	j := job{Store: store, Dir: t.TempDir(), Host: engine.Host()}
	j.Targets = append(j.Targets, startLogging(t, engine, engine.Busybox(t), store, "mc", false,
		map[string]string{"max-size": "10m", "max-file": "3"}, []string{"/bin/sh", "-c", script}))
	defer helper(t, j)()
	var got []string
	for burst := range 3 { // each is smaller than a file: Docker skips a file if the follower is too slow
		got = awaitJournal(t, j.Dir, "mc", func(got []string) bool {
			return len(got) > 0 && got[len(got)-1] == strconv.Itoa((burst+1)*100_000-1)
		})
		require.Equal(t, 204, engine.Act(t, j.Targets[0].ContainerID, "kill?signal=USR1"))
	}
	want := make([]string, n)
	for i := range want {
		want[i] = strconv.Itoa(i)
	}
	requireSame(t, want, got)
}

// TestRunOnAMachineWhoseClockIsBehind: a container that runs on one machine, then on another, has lines that are
// older than those before. None is dropped or repeated, and the start pattern is searched in them alone.
func TestRunOnAMachineWhoseClockIsBehind(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		run := func(number int, behind time.Duration, lines ...string) (target console.Target) {
			e.change("c1", func(c *container) { // the log of the run before is gone
				*c = container{changed: c.changed}
				for i, text := range lines {
					c.lines = append(c.lines, runtime.Line{Time: time.Now().Add(time.Duration(i) - behind), Data: []byte(text)})
				}
			})
			target = console.Target{ID: "mc", Role: runtime.Server, ContainerID: "c1", OwnLog: true, Pattern: "ready",
				StartedAt: time.Now().Add(time.Duration(number)), From: time.Now()}
			m.Follow(target)
			synctest.Wait()
			return target
		}
		first := run(1, 0, "first", "ready")
		require.True(t, m.Matched("mc", "c1", first.StartedAt))
		e.end("c1")
		synctest.Wait()
		time.Sleep(time.Second)

		second := run(2, 30*time.Second, "second", "line")
		require.False(t, m.Matched("mc", "c1", second.StartedAt), "the pattern was in the run before")
		for range 3 { // streams that end, as in a restart of the kubelet
			e.cut("c1")
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		e.change("c1", func(c *container) {
			c.lines = append(c.lines, runtime.Line{Time: time.Now().Add(-30 * time.Second), Data: []byte("ready")})
		})
		synctest.Wait()
		require.Equal(t, []string{"first", "ready", "second", "line", "ready"}, texts(t, h, "mc"))
		require.True(t, m.Matched("mc", "c1", second.StartedAt))
		e.end("c1")
		synctest.Wait()

		run(3, time.Minute, "third", "ready")
		require.Equal(t, []string{"first", "ready", "second", "line", "ready", "third", "ready"}, texts(t, h, "mc"))
	})
}

// TestRunThatHasNotBegun: the controller observes a container of a cluster while it starts, before the
// time of its start is known, and the program prints before the next observation.
func TestRunThatHasNotBegun(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		starting := console.Target{ID: "mc", Role: runtime.Server, ContainerID: "c1", OwnLog: true, Ended: true}
		e.print("c1", "a", "b")
		require.True(t, m.OutputComplete(starting), "it has no output")
		m.Follow(starting)
		require.NoError(t, m.Drain(t.Context(), starting))
		synctest.Wait()
		running := starting
		running.StartedAt, running.Ended = time.Now(), false
		m.Follow(running)
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, texts(t, h, "mc"))
	})
}

// Lines printed after the clock was set back are older than those before, and new.
func TestLinesAfterClockSetBackAreNew(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		e.change("c1", func(*container) {}) // the container exists
		m.Follow(target("c1"))
		e.print("c1", "a", "b")
		synctest.Wait()
		e.change("c1", func(c *container) { // the clock is an hour ahead, then correct again
			now := time.Now()
			c.lines = append(c.lines, runtime.Line{Time: now.Add(time.Hour), Data: []byte("ahead")},
				runtime.Line{Time: now, Data: []byte("ahead")}, runtime.Line{Time: now.Add(1), Data: []byte("right")})
		})
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "ahead", "ahead", "right"}, texts(t, h, "mc"))
	})
}

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
