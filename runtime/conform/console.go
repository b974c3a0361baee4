package conform

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// run returns the current or last run of n.
func (h *Harness) run(t *testing.T, n runtime.Name, follow bool) runtime.Target {
	t.Helper()
	s := h.inspect(t, n)
	return runtime.Target{ContainerID: s.ContainerID, StartedAt: s.StartedAt, TTY: s.TTY, OwnLog: s.OwnLog, Ended: !follow}
}

// read returns the lines after since.
func (h *Harness) read(t *testing.T, n runtime.Name, since time.Time, follow bool) (lines []runtime.Line) {
	t.Helper()
	require.NoError(t, h.Engine.Logs(t.Context(), h.run(t, n, follow), since, func(l runtime.Line) error {
		lines = append(lines, l)
		return nil
	}))
	return lines
}

// awaitOutput waits until a run has printed a line.
func (h *Harness) awaitOutput(t *testing.T, n runtime.Name) {
	t.Helper()
	enough := errors.New("enough")
	require.ErrorIs(t, h.Engine.Logs(t.Context(), h.run(t, n, true), time.Time{}, func(runtime.Line) error { return enough }), enough)
}

func texts(lines []runtime.Line) string {
	var all []string
	for _, l := range lines {
		all = append(all, string(l.Data))
	}
	return strings.Join(all, " ")
}

func logs(t *testing.T, h *Harness) {
	for _, tty := range []bool{false, true} {
		s := h.spec(SaysThree)
		s.TTY = tty
		h.createAndStart(t, s)
		h.awaitExit(t, s.Name)
		lines := h.read(t, s.Name, time.Time{}, false)
		require.Equal(t, "one two three", texts(lines))
		require.True(t, lines[1].Time.After(lines[0].Time))
		require.WithinDuration(t, time.Now(), lines[0].Time, time.Hour)
		require.Equal(t, "two three", texts(h.read(t, s.Name, lines[0].Time, false)), "since is exclusive")
		require.Empty(t, h.read(t, s.Name, lines[2].Time, true))

		stop := errors.New("enough")
		require.ErrorIs(t, h.Engine.Logs(t.Context(), h.run(t, s.Name, false), time.Time{}, func(runtime.Line) error { return stop }), stop)
		h.start(t, s.Name)
		h.awaitExit(t, s.Name)
		require.Equal(t, "one two three", texts(h.read(t, s.Name, lines[2].Time, false)), "the lines of the next run alone")
		all := "one two three one two three"
		if h.inspect(t, s.Name).OwnLog { // it may have run on another machine, whose clock says nothing about the lines of before
			all = "one two three"
		}
		require.Equal(t, all, texts(h.read(t, s.Name, time.Time{}, false)))
	}
}

func logsFollow(t *testing.T, h *Harness) {
	s := h.spec(SaysOne)
	h.createAndStart(t, s)
	first, ended := make(chan runtime.Line, 10), make(chan error, 1)
	run := h.run(t, s.Name, true)
	go func() {
		ended <- h.Engine.Logs(t.Context(), run, time.Time{}, func(l runtime.Line) error {
			first <- l
			return nil
		})
	}()
	require.Equal(t, "one", string((<-first).Data))
	require.Empty(t, ended, "Logs follows the container while it runs")
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	require.NoError(t, <-ended, "Logs returns after the exit")
	require.Empty(t, first)
}

func logsOfNothing(t *testing.T, h *Harness) {
	s := h.spec(SaysOne)
	h.create(t, s)
	require.Empty(t, h.read(t, s.Name, time.Time{}, true))
	run := h.run(t, s.Name, false)
	require.NoError(t, h.Engine.Remove(t.Context(), s.Name))
	err := h.Engine.Logs(t.Context(), run, time.Time{}, func(runtime.Line) error { return nil })
	require.ErrorIs(t, err, runtime.ErrNotFound)
}

func input(t *testing.T, h *Harness) {
	s := h.spec(Echoes)
	id := h.createAndStart(t, s)
	for _, line := range []string{"say hi\n", "say ho\n"} {
		require.NoError(t, h.Engine.Input(t.Context(), id, []byte(line)))
	}
	var said string
	await(t, "an echo", func() bool {
		said = texts(h.read(t, s.Name, time.Time{}, false))
		return strings.HasSuffix(said, "ho")
	})
	require.Equal(t, "say hi say ho", said)
	require.True(t, h.inspect(t, s.Name).Running, "its input stays open")
}

func inputToTheDead(t *testing.T, h *Harness) {
	s := h.spec(Echoes)
	id := h.create(t, s)
	require.ErrorIs(t, h.Engine.Input(t.Context(), id, []byte("hi\n")), runtime.ErrNotRunning)
}

func stats(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	s.Live.Memory = 64 << 20
	id := h.create(t, s)
	_, err := h.Engine.Stats(t.Context(), id)
	require.ErrorIs(t, err, runtime.ErrNotRunning)
	h.start(t, s.Name)
	got, err := h.Engine.Stats(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, int64(64<<20), got.MemoryLimit)
	require.Positive(t, got.Memory)
	require.LessOrEqual(t, got.Memory, got.MemoryLimit)
	require.Equal(t, h.able(runtime.CanCountPids), got.Pids > 0)
	require.WithinDuration(t, time.Now(), got.Read, time.Minute)
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	require.NoError(t, h.Engine.Remove(t.Context(), s.Name))
	_, err = h.Engine.Stats(t.Context(), id)
	require.ErrorIs(t, err, runtime.ErrNotFound)
}
