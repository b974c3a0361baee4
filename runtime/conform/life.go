package conform

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func absent(t *testing.T, h *Harness) {
	n, e := h.spec(Sleeps).Name, h.Engine
	_, err := e.Inspect(t.Context(), n)
	require.ErrorIs(t, err, runtime.ErrNotFound)
	require.ErrorIs(t, e.Start(t.Context(), n), runtime.ErrNotFound)
	require.ErrorIs(t, e.Signal(t.Context(), n, "TERM"), runtime.ErrNotFound)
	require.ErrorIs(t, e.Update(t.Context(), n, runtime.Live{CPU: 1}), runtime.ErrNotFound)
	require.ErrorIs(t, e.Unpause(t.Context(), n), runtime.ErrNotFound)
	require.NoError(t, e.Kill(t.Context(), n))
	require.NoError(t, e.Remove(t.Context(), n))
}

func instance(t *testing.T, h *Harness) {
	one, err := h.Engine.Instance(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, one)
	h.createAndStart(t, h.spec(Sleeps))
	same, err := h.Engine.Instance(t.Context())
	require.NoError(t, err)
	require.Equal(t, one, same)
}

func create(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	s.TTY, s.Revision, s.Incarnation, s.StopTimeout = true, 42, "5eed0001", 45*time.Second
	s.Live = h.limits(runtime.Live{Memory: 64 << 20, Swap: 8 << 20, CPU: 0.5, Pids: 50, Cpuset: "0"})
	id := h.create(t, s)
	require.NotEmpty(t, id)
	image, err := h.Engine.ImageID(t.Context(), s.Image)
	require.NoError(t, err)
	got := h.inspect(t, s.Name)
	want := runtime.State{ContainerID: id, ImageID: image, SpecHash: "1", Revision: 42, Incarnation: "5eed0001", Live: s.Live,
		TTY: true, StopTimeout: s.StopTimeout}
	want.OwnLog = got.OwnLog // either is right
	require.Equal(t, want, got)
}

func createAgain(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	id := h.createAndStart(t, s)
	before := h.inspect(t, s.Name)
	again, err := h.Engine.Create(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, id, again)
	require.Equal(t, before, h.inspect(t, s.Name), "the one that runs was adopted as it is")
}

func createAtOnce(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	h.clean(t, s.Name)
	var made [8]string
	var errs [8]error
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() { made[i], errs[i] = h.Engine.Create(t.Context(), s) })
	}
	all.Wait()
	id := h.inspect(t, s.Name).ContainerID
	for i := range made {
		require.NoError(t, errs[i])
		require.Equal(t, id, made[i])
	}
}

func createAnother(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	first := h.createAndStart(t, s)
	s.SpecHash = "2"
	_, err := h.Engine.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrRunning)
	require.True(t, h.inspect(t, s.Name).Running)

	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	second, err := h.Engine.Create(t.Context(), s)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.Equal(t, "2", h.inspect(t, s.Name).SpecHash)
}

func roles(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	install := s
	install.Name.Role = runtime.Install
	require.NotEqual(t, h.createAndStart(t, s), h.create(t, install))
	require.True(t, h.inspect(t, s.Name).Running)
	require.False(t, h.inspect(t, install.Name).Running)
	require.NoError(t, h.Engine.Remove(t.Context(), install.Name))
	require.True(t, h.inspect(t, s.Name).Running)
}

func start(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	h.createAndStart(t, s)
	first := h.inspect(t, s.Name)
	require.True(t, first.Running)
	require.False(t, first.StartedAt.IsZero())
	h.start(t, s.Name)
	require.Equal(t, first, h.inspect(t, s.Name), "a second start changes nothing")
}

func kill(t *testing.T, h *Harness) {
	s := h.spec(Ignores)
	h.createAndStart(t, s)
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	dead := h.inspect(t, s.Name)
	require.False(t, dead.Running, "it is dead when Kill returns")
	require.Equal(t, 137, dead.ExitCode)
	require.False(t, dead.OOMKilled)
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	h.start(t, s.Name)
	again := h.inspect(t, s.Name)
	require.True(t, again.StartedAt.After(dead.StartedAt))
	require.Zero(t, again.ExitCode)
}

func signal(t *testing.T, h *Harness) {
	s := h.spec(SaysOne)
	h.createAndStart(t, s)
	h.awaitOutput(t, s.Name) // a signal before the process exists would be lost
	require.ErrorIs(t, h.Engine.Signal(t.Context(), s.Name, "SIGNONSENSE"), runtime.ErrInvalid)
	require.True(t, h.inspect(t, s.Name).Running)
	require.NoError(t, h.Engine.Signal(t.Context(), s.Name, "SIGTERM"))
	require.Equal(t, 143, h.awaitExit(t, s.Name).ExitCode)
	require.NoError(t, h.Engine.Signal(t.Context(), s.Name, "SIGTERM"))
}

func remove(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	h.createAndStart(t, s)
	require.ErrorIs(t, h.Engine.Remove(t.Context(), s.Name), runtime.ErrRunning)
	require.True(t, h.inspect(t, s.Name).Running)
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	require.NoError(t, h.Engine.Remove(t.Context(), s.Name))
	_, err := h.Engine.Inspect(t.Context(), s.Name)
	require.ErrorIs(t, err, runtime.ErrNotFound)
	require.NoError(t, h.Engine.Remove(t.Context(), s.Name))
}

func exitCode(t *testing.T, h *Harness) {
	s := h.spec(ExitsWith3)
	h.createAndStart(t, s)
	first := h.awaitExit(t, s.Name)
	require.Equal(t, 3, first.ExitCode)
	// Docker records a start after it has begun, so a run that exits at once can
	// have a FinishedAt before its StartedAt.
	require.WithinDuration(t, first.StartedAt, first.FinishedAt, 10*time.Second)
	h.start(t, s.Name)
	require.True(t, h.awaitExit(t, s.Name).StartedAt.After(first.StartedAt))
}

func outOfMemory(t *testing.T, h *Harness) {
	s := h.spec(EatsMemory)
	s.Live.Memory = 16 << 20
	h.createAndStart(t, s)
	// Docker receives the report of the kernel separately from the exit. It can
	// miss it if both happen at the same time on a busy host. So the command runs
	// for a second longer here, and the test tries more than once.
	end := h.awaitExit(t, s.Name)
	for range 4 {
		require.NotZero(t, end.ExitCode)
		if end.OOMKilled {
			return
		}
		h.start(t, s.Name)
		end = h.awaitExit(t, s.Name)
	}
	require.True(t, end.OOMKilled)
}
