package console_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	"berth/controller/console"
	"berth/runtime"
)

// notifications collects the ids that the Source of a manager notifies.
type notifications struct {
	mu  sync.Mutex
	ids []string
}

func (l *notifications) notify(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, id)
}

func (l *notifications) take() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := l.ids
	l.ids = nil
	slices.Sort(ids)
	return ids
}

func matched(m *console.Manager, t console.Target) bool {
	return m.Matched(t.ID, t.ContainerID, t.StartedAt)
}

func TestPatternMatchIsNotifiedOnce(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var notified notifications
		go m.Source(ctx, notified.notify)
		tgt := target("c1")
		tgt.Pattern = "^Done"
		e.print("c1", "loading")
		require.False(t, matched(m, tgt))
		m.Follow(tgt)
		require.Empty(t, notified.take())
		require.False(t, matched(m, tgt))
		e.print("c1", "\x1b[32mDone\x1b[0m", "Done")
		require.Equal(t, []string{"mc"}, notified.take())
		require.True(t, matched(m, tgt))
		e.cut("c1")
		time.Sleep(time.Minute)
		m.Follow(tgt)
		require.True(t, matched(m, tgt))
		require.Empty(t, notified.take())

		next := tgt
		next.StartedAt, next.From = time.Now().Add(time.Second), time.Now()
		require.False(t, matched(m, next))
		m.Follow(next)
		require.Empty(t, notified.take())
		require.False(t, matched(m, next), "only the previous run has matched")
		require.False(t, matched(m, tgt), "that run is over")
		e.print("c1", "Done")
		require.Equal(t, []string{"mc"}, notified.take())
		require.True(t, matched(m, next))

		var late notifications
		go m.Source(ctx, late.notify)
		require.Equal(t, []string{"mc"}, late.take(), "a new source names all")
		e.end("c1")
	})
}

func TestEmptyPatternMatchesAtOnce(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		e.print("c1")
		tgt := target("c1")
		require.False(t, matched(m, tgt))
		m.Follow(tgt)
		require.True(t, matched(m, tgt))
		e.end("c1")
	})
}

func TestPatternIsFoundInJournal(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		tgt := target("c1")
		tgt.Pattern = "^Done"
		old := tgt
		old.Pattern = ""
		e.print("c1", "Done", "more")
		run := func(follow console.Target, test func(m *console.Manager)) {
			m := console.New(e, stream.New(dir, stream.Options{}), console.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() { m.Run(ctx) })
			m.Follow(follow)
			synctest.Wait()
			test(m)
			cancel()
			done.Wait()
		}
		run(old, func(*console.Manager) {}) // berth is killed before it has notified anybody
		time.Sleep(time.Hour)
		run(tgt, func(m *console.Manager) { require.True(t, matched(m, tgt)) })
		later := tgt
		later.From, later.StartedAt = time.Now(), time.Now()
		run(later, func(m *console.Manager) {
			require.False(t, matched(m, later))
			other := later
			other.From, other.Pattern = tgt.From, "more"
			m.Follow(other) // the client has changed the pattern
			synctest.Wait()
			require.True(t, matched(m, other))
		})
		e.end("c1")
	})
}

func TestFirstLinesMayBeOlderThanTheStart(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		tgt := target("c1")
		tgt.Pattern = "Done"
		tgt.StartedAt = tgt.From.Add(time.Second)
		e.print("c1", "Done")
		m.Follow(tgt)
		synctest.Wait()
		require.True(t, matched(m, tgt))
		e.end("c1")
	})
}

func TestInstallersMatchNothing(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		tgt := target("i1")
		tgt.Role, tgt.Pattern = runtime.Install, "Done"
		e.print("i1", "Done")
		m.Follow(tgt)
		synctest.Wait()
		require.False(t, matched(m, tgt))
		require.Empty(t, m.RunningIDs())
		e.end("i1")
	})
}

// TestOutputCompleteIsNotified requires that Source names the container once the output
// is complete.
func TestOutputCompleteIsNotified(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		notified := make(chan string, 10)
		go func() { _ = m.Source(t.Context(), func(id string) { notified <- id }) }()
		tgt := target("c1")
		m.Follow(tgt)
		synctest.Wait()
		for len(notified) > 0 {
			<-notified // its empty pattern
		}
		e.print("c1", "a")
		e.mu.Lock()
		e.down = runtime.ErrUnavailable
		e.mu.Unlock()
		e.end("c1")
		require.False(t, m.OutputComplete(tgt))
		synctest.Wait()
		require.Empty(t, notified)
		e.mu.Lock()
		e.down = nil
		e.mu.Unlock()
		require.Equal(t, "mc", <-notified)
		require.True(t, m.OutputComplete(tgt))
		require.Equal(t, []string{"a"}, texts(t, h, "mc"))
	})
}

// TestFloodDoesNotDelayExit requires that OutputComplete returns true after maxBacklog,
// and that the next run starts from zero.
func TestFloodDoesNotDelayExit(t *testing.T) {
	life(t, func(t *testing.T, e *engine, _ *stream.Hub, m *console.Manager) {
		notified := make(chan string, 10)
		tgt := target("c1")
		m.Follow(tgt)
		e.print("c1", "a")
		go func() { _ = m.Source(t.Context(), func(id string) { notified <- id }) }()
		synctest.Wait()
		for len(notified) > 0 {
			<-notified // its empty pattern
		}
		require.False(t, m.OutputComplete(tgt))
		flood := slices.Repeat([]string{"y"}, 9_000)
		e.print("c1", flood...)
		synctest.Wait()
		require.Empty(t, notified)
		require.False(t, m.OutputComplete(tgt))
		e.print("c1", flood...)
		require.Equal(t, "mc", <-notified)
		require.True(t, m.OutputComplete(tgt))
		e.print("c1", flood...)
		synctest.Wait()
		require.Empty(t, notified, "once is enough")
		e.print("c2", "b")
		require.False(t, m.OutputComplete(target("c2")))
		e.end("c1")
		e.end("c2")
		require.Equal(t, "mc", <-notified)
		synctest.Wait()
		require.True(t, m.OutputComplete(target("c2")))
	})
}

// TestInstallationWaitsForItsOutput requires that no flood lets the end of an installation be
// recorded before its output was read: the installer is removed with the rest.
func TestInstallationWaitsForItsOutput(t *testing.T) {
	life(t, func(t *testing.T, e *engine, _ *stream.Hub, m *console.Manager) {
		tgt := target("c1")
		tgt.Role = runtime.Install
		m.Follow(tgt)
		e.print("c1", "a")
		synctest.Wait()
		require.False(t, m.OutputComplete(tgt))
		e.print("c1", slices.Repeat([]string{"y"}, 40_000)...)
		synctest.Wait()
		require.False(t, m.OutputComplete(tgt))
		e.end("c1")
		synctest.Wait()
		require.True(t, m.OutputComplete(tgt))
	})
}

// TestDrainTrustsReportedEnd requires that Drain reads no more streams after the engine
// has reported the end of the output than the one of what the last lacks.
func TestDrainTrustsReportedEnd(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		tgt := target("c1")
		e.print("c1", "a")
		m.Follow(tgt)
		synctest.Wait()
		e.print("c1", "b")
		e.end("c1")
		require.NoError(t, m.Drain(t.Context(), tgt))
		require.Equal(t, []string{"a", "b"}, texts(t, h, "mc"))
		require.Equal(t, 2, e.reads)
	})
}
