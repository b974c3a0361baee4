package console_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	"berth/controller/console"
	"berth/runtime"
)

// TestHeardDoesNotWait: Source tells when it is worth asking again.
func TestHeardDoesNotWait(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		told := make(chan string, 10)
		go func() { _ = m.Source(t.Context(), func(id string) { told <- id }) }()
		tgt := target("c1")
		m.Follow(tgt)
		synctest.Wait()
		for len(told) > 0 {
			<-told // its empty pattern
		}
		e.print("c1", "a")
		e.mu.Lock()
		e.down = runtime.ErrUnavailable
		e.mu.Unlock()
		e.end("c1")
		require.False(t, m.Heard(tgt))
		synctest.Wait()
		require.Empty(t, told)
		e.mu.Lock()
		e.down = nil
		e.mu.Unlock()
		require.Equal(t, "mc", <-told)
		require.True(t, m.Heard(tgt))
		require.Equal(t, []string{"a"}, texts(t, h, "mc"))
	})
}

// TestDrainTrustsAnEndThatTheEngineTold: that of a stream which broke it does not.
func TestDrainTrustsAnEndThatTheEngineTold(t *testing.T) {
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
