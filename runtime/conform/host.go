package conform

import (
	"strconv"
	"strings"
	"testing"
	"time"

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
	if !h.able(runtime.CanDetectPorts) {
		defer free()
		h.start(t, s.Name) // otherwise the engine has what it is said to lack
		return
	}
	require.ErrorIs(t, h.Engine.Start(t.Context(), s.Name), runtime.ErrPortTaken, "by a process of the host")
	require.False(t, h.inspect(t, s.Name).Running)
	free()
	// Docker 28 sees the exit of a start that failed later than its answer. Where the
	// next start has begun by then, Docker takes it for the exit of that run, and the
	// container has to be started once more (moby, handleContainerExit).
	await(t, "a run after the port is free", func() bool {
		h.start(t, s.Name)
		return h.inspect(t, s.Name).Running
	})
}

// lacking checks that an engine refuses what it lacks, instead of storing a limit without
// enforcing it.
func lacking(t *testing.T, h *Harness) {
	for c, change := range map[runtime.Capability]func(*runtime.Spec){
		runtime.CanSwap:      func(s *runtime.Spec) { s.Live.Memory, s.Live.Swap = 64<<20, 8<<20 },
		runtime.CanPids:      func(s *runtime.Spec) { s.Live.Pids = 50 },
		runtime.CanCpuset:    func(s *runtime.Spec) { s.Live.Cpuset = "0" },
		runtime.CanIOWeight:  func(s *runtime.Spec) { s.IOWeight = 100 },
		runtime.CanNoOOMKill: func(s *runtime.Spec) { s.Live.Memory, s.Live.NoOOMKill = 64<<20, true },
		runtime.CanNameUsers: func(s *runtime.Spec) { s.User = "nobody" },
		runtime.CanPlace:     func(s *runtime.Spec) { s.Placement.RuntimeClass = "gvisor" },
		runtime.CanMountHost: func(s *runtime.Spec) { s.Mounts = []runtime.Mount{{Source: t.TempDir(), Target: "/mnt"}} },
	} {
		if h.able(c) {
			continue
		}
		s := h.spec(Sleeps)
		h.create(t, s)
		before := h.inspect(t, s.Name)
		changed := s
		changed.SpecHash = "2"
		change(&changed)
		_, err := h.Engine.Create(t.Context(), changed)
		require.ErrorIs(t, err, runtime.ErrInvalid, c)
		require.ErrorContains(t, err, string(c))
		if changed.Live != s.Live {
			require.ErrorIs(t, h.Engine.Update(t.Context(), s.Name, changed.Live), runtime.ErrInvalid, c)
		}
		require.Equal(t, before, h.inspect(t, s.Name))
	}
}

func update(t *testing.T, h *Harness) {
	s := h.spec(ShowsLimits)
	s.Live = h.limits(runtime.Live{Memory: 64 << 20, CPU: 0.5, Pids: 50})
	h.createAndStart(t, s)
	h.requireEnforced(t, s.Name)
	before := h.inspect(t, s.Name)
	change := h.limits(runtime.Live{Memory: 96 << 20, Swap: 16 << 20, CPU: 1.5, Pids: 60})
	require.NoError(t, h.Engine.Update(t.Context(), s.Name, change))
	require.NoError(t, h.Engine.Update(t.Context(), s.Name, h.limits(runtime.Live{Cpuset: "0"})))
	want := before
	want.Live = h.limits(runtime.Live{Memory: 96 << 20, Swap: 16 << 20, CPU: 1.5, Pids: 60, Cpuset: "0"})
	require.Equal(t, want, h.inspect(t, s.Name), "the same run, other limits")
	h.requireEnforced(t, s.Name)

	require.NoError(t, h.Engine.Update(t.Context(), s.Name, runtime.Live{CPU: 1.0 / 3}))
	want.Live.CPU = 0.333333333
	require.Equal(t, want, h.inspect(t, s.Name), "an engine counts billionths of a cpu")
	h.requireEnforced(t, s.Name)

	require.NoError(t, h.Engine.Update(t.Context(), s.Name, runtime.Live{Memory: 32 << 20}))
	want.Live.Memory, want.Live.Swap = 32<<20, 0
	require.Equal(t, want.Live, h.inspect(t, s.Name).Live, "memory and swap go together")
	h.requireEnforced(t, s.Name)

	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	h.start(t, s.Name)
	require.Equal(t, want.Live, h.inspect(t, s.Name).Live, "the next run has the same limits")
	h.requireEnforced(t, s.Name)

	for _, live := range []runtime.Live{{Memory: 128 << 20, CPU: 0.75}, {Memory: 48 << 20, CPU: 0.25}} {
		require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
		require.NoError(t, h.Engine.Update(t.Context(), s.Name, live))
		want.Live.Memory, want.Live.CPU = live.Memory, live.CPU
		h.start(t, s.Name)
		require.Equal(t, want.Live, h.inspect(t, s.Name).Live, "those that were changed after the exit")
		h.requireEnforced(t, s.Name)
	}
}

// requireEnforced compares the limits of a container that runs ShowsLimits with those of its
// cgroup: a limit that is only recorded does not pass.
func (h *Harness) requireEnforced(t *testing.T, n runtime.Name) {
	t.Helper()
	seen := h.inspect(t, n)
	before := len(h.read(t, n, time.Time{}, false))
	require.NoError(t, h.Engine.Input(t.Context(), seen.ContainerID, []byte("show\n")))
	var fields []string
	await(t, "the limits of a cgroup", func() bool {
		lines := h.read(t, n, time.Time{}, false)
		if len(lines) <= before {
			return false
		}
		fields = strings.Fields(string(lines[before].Data))
		return true
	})
	require.Len(t, fields, 4)
	require.Equal(t, strconv.FormatInt(seen.Live.Memory, 10), fields[0], "bytes of memory")
	quota, err := strconv.ParseFloat(fields[1], 64)
	require.NoError(t, err)
	period, err := strconv.ParseFloat(fields[2], 64)
	require.NoError(t, err)
	require.InDelta(t, seen.Live.CPU, quota/period, 0.001, "cores; engines count thousandths at least")
	if h.able(runtime.CanPids) {
		pids, err := strconv.ParseInt(fields[3], 10, 64)
		require.NoError(t, err)
		require.LessOrEqual(t, seen.Live.Pids, pids, "pids, beside those of the first process")
		require.LessOrEqual(t, pids, seen.Live.Pids+16)
	}
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
	if !h.able(runtime.CanPause) {
		return
	}
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
	h.start(t, s.Name)
	h.Vanish(t, s.Name)
	require.NoError(t, h.Engine.Kill(t.Context(), s.Name))
	require.NoError(t, h.Engine.Remove(t.Context(), s.Name))
}

func startedOutside(t *testing.T, h *Harness) {
	s := h.spec(Sleeps)
	h.create(t, s)
	h.Outside(t, s.Name)
	require.True(t, h.inspect(t, s.Name).Running)
	h.start(t, s.Name)
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
