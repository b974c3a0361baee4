package enginetest_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/enginetest"
)

func sleeper(t *testing.T, e *enginetest.Isolated) (id string, pid int) {
	t.Helper()
	id = e.CreateRaw(t, "", map[string]any{"Image": e.Busybox(t), "Cmd": []string{"sleep", "1000"}})
	require.Equal(t, 204, e.Act(t, id, "start"))
	one, found := e.Inspect(t, id)
	require.True(t, found)
	return id, one.State.Pid
}

func TestIsolatedEngineRestarts(t *testing.T) {
	t.Parallel()
	e := enginetest.StartIsolated(t)
	shared := enginetest.Shared(t)
	id, _ := sleeper(t, e)
	_, found := shared.Inspect(t, id)
	require.False(t, found, "the shared engine knows nothing of it")
	e.Kill9(t)
	require.Error(t, e.Ping(t.Context()))
	e.Start(t)
	one, found := e.Inspect(t, id)
	require.True(t, found)
	require.False(t, one.State.Running)
	e.Terminate(t)
	e.Start(t)
}

// TestTerminateKillsStuckEngine: a dockerd that ignores SIGTERM does not block a test.
func TestTerminateKillsStuckEngine(t *testing.T) {
	t.Parallel()
	e := enginetest.StartIsolated(t)
	e.StopTimeout = time.Second
	e.Freeze(t)
	e.Terminate(t)
	e.Start(t)
}

func TestLiveRestoreKeepsContainers(t *testing.T) {
	t.Parallel()
	e := enginetest.StartIsolated(t, "--live-restore")
	id, pid := sleeper(t, e)
	for _, end := range []func(testing.TB){e.Kill9, e.Terminate} {
		end(t)
		require.DirExists(t, "/proc/"+strconv.Itoa(pid))
		e.Start(t)
		one, _ := e.Inspect(t, id)
		require.True(t, one.State.Running)
		require.Equal(t, pid, one.State.Pid)
	}
}

func TestFreezeAndThaw(t *testing.T) {
	t.Parallel()
	e := enginetest.StartIsolated(t)
	e.Freeze(t)
	require.Eventually(t, func() bool { return e.Ping(t.Context()) != nil }, time.Minute, time.Millisecond, "a stop takes effect a moment later")
	e.Thaw(t)
	require.NoError(t, e.Ping(t.Context()))
	e.FreezeContainerd(t)
	require.NoError(t, e.Ping(t.Context()))
}

func TestIsolatedEngineLeavesNothing(t *testing.T) {
	t.Parallel()
	var pid int
	t.Run("engine", func(t *testing.T) {
		e := enginetest.StartIsolated(t, "--live-restore")
		_, pid = sleeper(t, e)
		e.Kill9(t)
		e.Start(t)
	})
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	require.ErrorIs(t, err, os.ErrNotExist)
}
