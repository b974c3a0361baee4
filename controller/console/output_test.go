package console_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	"berth/controller/console"
	"berth/runtime"
)

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

// TestDrainTrustsReportedEnd requires that Drain reads no second stream after the engine
// has reported the end of the output.
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
		require.Equal(t, 1, e.reads)
	})
}
