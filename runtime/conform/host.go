package conform

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func mountMissing(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	dir := h.Dir(t)
	s.Mounts = []runtime.Mount{{Source: dir, Target: "/home/container"}}
	h.create(t, s)
	h.DropDir(t, dir)
	require.ErrorIs(t, h.Engine.Start(t.Context(), s.Name), runtime.ErrMountMissing)
	require.False(t, h.inspect(t, s.Name).Running)
	require.NoError(t, h.Engine.Remove(t.Context(), s.Name))
	_, err := h.Engine.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrMountMissing)
}

func portTaken(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	port := h.Port(t)
	s.Ports = []runtime.Port{{IP: "127.0.0.1", Port: port, ContainerPort: 25565, Protocol: "tcp"}}
	h.createAndStart(t, s)
	require.True(t, h.inspect(t, s.Name).Running)

	rival := h.spec(Sleeps)
	rival.Ports = s.Ports
	h.create(t, rival)
	require.ErrorIs(t, h.Engine.Start(t.Context(), rival.Name), runtime.ErrPortTaken, "by another container")
	require.False(t, h.inspect(t, rival.Name).Running)

	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	free := h.Occupy(t, port)
	require.ErrorIs(t, h.Engine.Start(t.Context(), s.Name), runtime.ErrPortTaken, "by a process of the host")
	require.False(t, h.inspect(t, s.Name).Running)
	free()
	// Docker 28 sees the exit of a start that failed later than its answer. Where the
	// next start has begun by then, Docker takes it for the exit of that run, and the
	// container has to be started once more (moby, handleContainerExit).
	await(t, "a run after the port is free", func() bool {
		require.NoError(t, h.Engine.Start(t.Context(), s.Name))
		return h.inspect(t, s.Name).Running
	})
}

func update(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	s.Live = runtime.Live{Memory: 64 << 20, CPU: 0.5, Pids: 50}
	h.createAndStart(t, s)
	before := h.inspect(t, s.Name)
	require.NoError(t, h.Engine.Update(t.Context(), s.Name, runtime.Live{Memory: 96 << 20, Swap: 16 << 20, CPU: 1.5, Pids: 60}))
	require.NoError(t, h.Engine.Update(t.Context(), s.Name, runtime.Live{Cpuset: "0"}))
	want := before
	want.Live = runtime.Live{Memory: 96 << 20, Swap: 16 << 20, CPU: 1.5, Pids: 60, Cpuset: "0"}
	require.Equal(t, want, h.inspect(t, s.Name), "the same run, other limits")

	require.NoError(t, h.Engine.Update(t.Context(), s.Name, runtime.Live{CPU: 1.0 / 3}))
	want.Live.CPU = 0.333333333
	require.Equal(t, want, h.inspect(t, s.Name), "an engine counts billionths of a cpu")

	require.NoError(t, h.Engine.Update(t.Context(), s.Name, runtime.Live{Memory: 32 << 20}))
	want.Live.Memory, want.Live.Swap = 32<<20, 0
	require.Equal(t, want.Live, h.inspect(t, s.Name).Live, "memory and swap go together")
}

func updateRefused(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	s.Live.Memory = 64 << 20
	h.create(t, s)
	require.ErrorIs(t, h.Engine.Update(t.Context(), s.Name, runtime.Live{Memory: 1 << 20}), runtime.ErrInvalid)
	require.Equal(t, int64(64<<20), h.inspect(t, s.Name).Live.Memory)
}

func paused(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	h.createAndStart(t, s)
	require.NoError(t, h.Engine.Unpause(t.Context(), s.Name))
	h.Pause(t, s.Name)
	seen := h.inspect(t, s.Name)
	require.True(t, seen.Paused)
	require.True(t, seen.Running)
	require.NoError(t, h.Engine.Unpause(t.Context(), s.Name))
	require.False(t, h.inspect(t, s.Name).Paused)
	h.Pause(t, s.Name)
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	require.False(t, h.inspect(t, s.Name).Running)
	require.NoError(t, h.Engine.Unpause(t.Context(), s.Name))
}

func vanished(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	id := h.createAndStart(t, s)
	h.Vanish(t, s.Name)
	require.ErrorIs(t, h.Engine.Start(t.Context(), s.Name), runtime.ErrNotFound)
	_, err := h.Engine.Inspect(t.Context(), s.Name)
	require.ErrorIs(t, err, runtime.ErrNotFound)
	again, err := h.Engine.Create(t.Context(), s)
	require.NoError(t, err)
	require.NotEqual(t, id, again)
	require.NoError(t, h.Engine.Start(t.Context(), s.Name))
	h.Vanish(t, s.Name)
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	require.NoError(t, h.Engine.Remove(t.Context(), s.Name))
}

func startedOutside(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	h.create(t, s)
	h.Outside(t, s.Name)
	require.True(t, h.inspect(t, s.Name).Running)
	require.NoError(t, h.Engine.Start(t.Context(), s.Name))
}

func foreign(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	untouched := h.Foreign(t, s.Name)
	_, err := h.Engine.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrUnmanaged)
	_, err = h.Engine.Inspect(t.Context(), s.Name)
	require.ErrorIs(t, err, runtime.ErrNotFound)
	require.ErrorIs(t, h.Engine.Start(t.Context(), s.Name), runtime.ErrNotFound)
	require.ErrorIs(t, h.Engine.Signal(t.Context(), s.Name, "KILL"), runtime.ErrNotFound)
	require.ErrorIs(t, h.Engine.Update(t.Context(), s.Name, runtime.Live{CPU: 1}), runtime.ErrNotFound)
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	require.NoError(t, h.Engine.Remove(t.Context(), s.Name))
	found, err := h.Engine.List(t.Context())
	require.NoError(t, err)
	for _, f := range found {
		require.NotEqual(t, s.Name, f.Name)
	}
	untouched()
}
