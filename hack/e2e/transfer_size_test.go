package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// watchedMemory is by how much the memory of a daemon has grown at most.
type watchedMemory struct {
	b      *berthtest.Berth
	before int64
}

// watchMemory begins to watch the memory of a daemon. Its highest mark of before does not count.
func watchMemory(t *testing.T, b *berthtest.Berth) watchedMemory {
	t.Helper()
	require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", b.Pid()), []byte("5"), 0))
	return watchedMemory{b, memory(t, b, "VmRSS:")}
}

// grown returns by how many bytes it has grown at most.
func (w watchedMemory) grown(t *testing.T) int64 {
	t.Helper()
	return memory(t, w.b, "VmHWM:") - w.before
}

// memory returns a number of bytes that the kernel has counted of a daemon.
func memory(t *testing.T, b *berthtest.Berth, name string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Pid()))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), name)
	require.True(t, found, name)
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kb << 10
}

// between returns the time from the exit of the container at one node to its creation at the other one, which starts it then.
func between(t *testing.T, from, to *berthtest.Berth) time.Duration {
	t.Helper()
	exited, created := stateTimes(t, from, v1.Exit), stateTimes(t, to, v1.Installing)
	return created[0].Sub(exited[len(exited)-1])
}

// stateTimes returns when the containers of a node entered a state.
func stateTimes(t *testing.T, b *berthtest.Berth, state v1.Phase) (times []time.Time) {
	t.Helper()
	for _, e := range events(t, b) {
		if e.Event == v1.EventState && e.Data == string(state) {
			at, err := time.Parse(time.RFC3339Nano, e.Time)
			require.NoError(t, err)
			times = append(times, at)
		}
	}
	require.NotEmpty(t, times, state)
	return times
}

// TestTransferOfManyFiles: of a large volume with many files, over connections that are cut, nothing is sent twice but what was
// being sent; the memory of both nodes is bounded, and what is done while the server is stopped is short. BERTH_LONG moves
// 2 GiB in 20,000 files, and measures that time.
func TestTransferOfManyFiles(t *testing.T) {
	t.Parallel()
	files, size := 1000, int64(64<<20)
	if os.Getenv("BERTH_LONG") != "" {
		files, size = 20_000, 2<<30
	}
	n := startNodes(t)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	dir := filepath.Join(n.a.Data, "volumes", volume)
	content, random := make([]byte, int(size)/files), rand.NewChaCha8([32]byte{})
	for i := range files {
		in := filepath.Join(dir, fmt.Sprint("region", i%20))
		require.NoError(t, os.MkdirAll(in, 0o755))
		_, _ = random.Read(content)
		require.NoError(t, os.WriteFile(filepath.Join(in, fmt.Sprint("r.", i)), content, 0o644))
	}
	written := time.Now()
	berthtest.Until(t, wait, "the changes are older than the grain of the clock", func() bool { return time.Since(written) > 3*time.Second })
	var through carried
	source, destination := watchMemory(t, n.a), watchMemory(t, n.b)
	began := time.Now()
	id := n.move(t, n.a, n.b, map[string]any{"url": cutting(t, n.b, &through, every(size*3/5))})
	v := ended(t, n.a, id)
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	took := time.Since(began)
	berthtest.Until(t, wait, "it runs there", func() bool { return len(n.b.Processes(t)) == 1 })
	down := between(t, n.a, n.b)
	t.Logf("%d files of %d MiB in all: %.1f s, %.2f s from the exit to the commit, round %d, %d connections were cut, %d MiB were sent, "+
		"memory grew by %d MiB and %d MiB", files, size>>20, took.Seconds(), down.Seconds(), v.Progress.Round, through.cuts.Load(),
		through.bytes.Load()>>20, source.grown(t)>>20, destination.grown(t)>>20)
	checkStamps(t, n.b, volume)
	require.Positive(t, through.cuts.Load())
	require.Less(t, through.bytes.Load(), size+size/10+through.cuts.Load()*(8<<20), "only what was missing was sent again")
	require.LessOrEqual(t, source.grown(t), int64(64<<20))
	require.LessOrEqual(t, destination.grown(t), int64(64<<20))
	if os.Getenv("BERTH_LONG") != "" {
		require.LessOrEqual(t, down, 3*time.Second)
	}
}

// TestTransferOfAMillionFiles: a container whose tenant makes a million empty files is moved in bounded memory. BERTH_LONG makes a
// million; otherwise there are 20,000.
func TestTransferOfAMillionFiles(t *testing.T) {
	t.Parallel()
	files := rounds(20_000, 1_000_000)
	n := startNodes(t)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	dir := filepath.Join(n.a.Data, "volumes", volume, "many")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("chunk-%09d", i)))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	source, destination := watchMemory(t, n.a), watchMemory(t, n.b)
	began := time.Now()
	id := n.move(t, n.a, n.b, nil)
	var v v1.TransferView
	berthtest.Until(t, 30*time.Minute, "the transfer ends", func() bool {
		v = transferOf(t, n.a, id)
		return v.State.Finished()
	})
	took := time.Since(began)
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	berthtest.Until(t, wait, "it runs there", func() bool { return len(n.b.Processes(t)) == 1 })
	t.Logf("%d files: %.1f s, %.2f s from the exit to the commit, round %d, memory grew by %d MiB and %d MiB", files, took.Seconds(),
		between(t, n.a, n.b).Seconds(), v.Progress.Round, source.grown(t)>>20, destination.grown(t)>>20)
	there, err := os.ReadDir(filepath.Join(n.b.Data, "volumes", volume, "many"))
	require.NoError(t, err)
	require.Len(t, there, files)
	checkStamps(t, n.b, volume)
	require.LessOrEqual(t, source.grown(t), int64(512<<20))
	require.LessOrEqual(t, destination.grown(t), int64(512<<20))
}

// TestTransferBandwidth: a transfer sends no faster than transfers.bandwidth, nor than its own bandwidth. How much slower it is depends
// on the machine.
func TestTransferBandwidth(t *testing.T) {
	t.Parallel()
	const limit, size, burst = 256 << 10, 1 << 20, 256 << 10
	n := nodes{berthtest.Start(t, berthtest.Options{Config: "transfers: {bandwidth: 256KiB}\n"}), berthtest.Start(t, berthtest.Options{})}
	volume := n.a.Volume(t)
	n.a.Made(t, "mc", berthtest.Spec{"volume_id": volume})
	require.NoError(t, os.WriteFile(filepath.Join(n.a.Data, "volumes", volume, "world"), noise(size), 0o644))
	moved := func(from, to *berthtest.Berth, own int) {
		t.Helper()
		v := ended(t, from, n.move(t, from, to, map[string]any{"bandwidth": own}))
		require.Equal(t, v1.TransferCompleted, v.State, v.Message)
		times := map[string]time.Time{}
		for _, e := range events(t, from) {
			if e.Event == v1.EventTransfer {
				at, err := time.Parse(time.RFC3339Nano, e.Time)
				require.NoError(t, err)
				times[e.Data] = at
			}
		}
		took := times[string(v1.TransferStopping)].Sub(times[string(v1.TransferCopying)])
		require.GreaterOrEqual(t, took, time.Duration(size-burst)*time.Second/limit)
		gone(t, from, "/volumes/"+volume)
		to.State(t, "mc", "ready")
	}
	moved(n.a, n.b, 0)
	moved(n.b, n.a, limit)
}

// carried is what went through a proxy.
type carried struct {
	cuts   atomic.Int64 // connections that were cut
	stalls atomic.Int64 // of them, those that carried nothing for a time before
	bytes  atomic.Int64 // to the node
}

// Write implements io.Writer.
func (c *carried) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}
