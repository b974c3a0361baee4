package docker

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"berth/runtime"
	"berth/runtime/cgroup"
)

// The kernel's files and the engine report the same figures.
func TestStatsMatchCgroup(t *testing.T) {
	r := newRig(t)
	s := r.spec("stats", "i=0; while [ ! -e /ran ] && [ $i -lt 100000 ]; do i=$((i+1)); done; touch /ran; dd if=/dev/zero of=/dev/shm/x bs=1M count=20 2>/dev/null; echo done; cat")
	id := r.run(t, s)
	enough := errors.New("enough")
	require.ErrorIs(t, r.Logs(t.Context(), r.target(t, id, true), time.Time{}, func(runtime.Line) error { return enough }), enough)
	quick, err := cgroup.New(nil).Stats(t.Context(), id)
	require.NoError(t, err, "the kernel's files can be read here")
	asked, err := r.Stats(t.Context(), id)
	require.NoError(t, err)

	require.Contains(t, asked.Read.String(), "m=", "ages hold when the clock is set")
	require.Equal(t, asked.MemoryLimit, quick.MemoryLimit)
	require.Equal(t, asked.Pids, quick.Pids)
	require.InDelta(t, asked.Memory, quick.Memory, 4<<20)
	require.Greater(t, quick.Memory, int64(20<<20))
	require.InDelta(t, asked.CPU, quick.CPU, float64(200*time.Millisecond))
	require.Greater(t, quick.CPU, 5*time.Millisecond)
	require.InDelta(t, asked.NetworkRx, quick.NetworkRx, 4096)
	require.InDelta(t, asked.BlockRead, quick.BlockRead, 1<<20)

	require.NoError(t, r.Kill(t.Context(), s.Name))
	_, err = r.Stats(t.Context(), id)
	require.ErrorIs(t, err, runtime.ErrNotRunning)
	require.NoError(t, r.Start(t.Context(), s.Name))
	again, err := r.Stats(t.Context(), id)
	require.NoError(t, err)
	require.Less(t, again.CPU, quick.CPU, "counters begin anew with a run")
}

func TestStatsConversion(t *testing.T) {
	const answer = `{"read":"2026-11-21T02:00:00Z","pids_stats":{"current":3},
	 "cpu_stats":{"cpu_usage":{"total_usage":7000}},
	 "memory_stats":{"usage":1000,"limit":5000,"stats":{"inactive_file":300}},
	 "blkio_stats":{"io_service_bytes_recursive":[{"op":"read","value":1},{"op":"Read","value":2},{"op":"write","value":4},{"op":"Total","value":7}]},
	 "networks":{"eth0":{"rx_bytes":10,"tx_bytes":20},"eth1":{"rx_bytes":1,"tx_bytes":2}}}`
	var read container.StatsResponse
	require.NoError(t, json.Unmarshal([]byte(answer), &read))
	require.Equal(t, runtime.Stats{
		CPU: 7 * time.Microsecond, Memory: 700, MemoryLimit: 5000,
		NetworkRx: 11, NetworkTx: 22, BlockRead: 3, BlockWrite: 4, Pids: 3,
	}, stats(read))

	read.MemoryStats.Stats = map[string]uint64{"total_inactive_file": 600, "inactive_file": 300}
	require.Equal(t, int64(400), memory(read.MemoryStats))
	read.MemoryStats.Stats = map[string]uint64{"inactive_file": 2000}
	require.Equal(t, int64(1000), memory(read.MemoryStats), "never below nothing")
}
