package stream_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
)

func event(seq uint64, data string) v1.Event {
	return v1.Event{Seq: seq, Time: line(int(seq)).Time, Container: "mc", Event: v1.EventState, Data: data}
}

func listen(t *testing.T, h *stream.Hub, id string) *stream.Listener {
	t.Helper()
	l, err := h.Listen(id)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

func next(t *testing.T, l *stream.Listener) []message {
	t.Helper()
	out, err := take(t.Context(), l)
	require.NoError(t, err)
	var list []message
	for _, m := range out {
		list = append(list, decode(t, m))
	}
	return list
}

func TestEventsPrecedeNewerLines(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	l := listen(t, h, "mc")
	write(t, h, []v1.Line{line(2), line(3)})
	h.Event(event(1, "starting"))
	h.Event(event(4, "running"))
	h.Event(v1.Event{Seq: 5, Container: "other", Event: v1.EventState, Data: "exit"})
	require.Equal(t, []message{
		{Event: "event", Data: "starting", Time: line(1).Time, Seq: 1},
		{Event: "console", Data: "line 2\nline 3\n", Time: line(3).Time},
		{Event: "event", Data: "running", Time: line(4).Time, Seq: 4},
	}, next(t, l))
	h.Event(event(6, "exit"))
	require.Equal(t, []message{{Event: "event", Data: "exit", Time: line(6).Time, Seq: 6}}, next(t, l))
}

// TestEachLineHasItsTime: with the time of any line, a client reads those before it from the history.
func TestEachLineHasItsTime(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	l := listen(t, h, "mc")
	half := line(2)
	half.Partial = true
	write(t, h, []v1.Line{line(1), half, line(3), line(4)})
	out, err := take(t.Context(), l)
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.Equal(t, "line 1\nline 2line 3\nline 4\n", *out[0].Data)
	require.Equal(t, []time.Time{line(1).Time, line(2).Time, line(4).Time}, out[0].Times)
	write(t, h, []v1.Line{line(5)})
	out, err = take(t.Context(), l)
	require.NoError(t, err)
	require.Nil(t, out[0].Times)
	require.Equal(t, line(5).Time, out[0].Time)
}

func TestAfterLeavesOutEarlierEvents(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	l := listen(t, h, "mc")
	h.Event(event(4, "starting"))
	h.Event(event(5, "running"))
	l.After(6)
	h.Event(event(6, "stopping"))
	h.Event(event(7, "exit"))
	got := next(t, l)
	require.Len(t, got, 1)
	require.EqualValues(t, 7, got[0].Seq)
}

func TestEventsAreNeverDropped(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	slow, good := listen(t, h, "mc"), listen(t, h, "mc")
	const n = 5000
	for seq := range uint64(n) {
		h.Event(event(seq+1, "running"))
		require.EqualValues(t, seq+1, next(t, good)[0].Seq)
	}
	_, err := take(t.Context(), slow)
	require.ErrorIs(t, err, stream.ErrSlow)
	_, err = take(t.Context(), slow)
	require.ErrorIs(t, err, stream.ErrSlow)
}

func TestMissedEndsAllListeners(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	one, node := listen(t, h, "mc"), listen(t, h, "")
	h.Event(event(1, "running"))
	h.Missed()
	for _, l := range []*stream.Listener{one, node} {
		_, err := take(t.Context(), l)
		require.ErrorIs(t, err, stream.ErrSlow)
	}
	later := listen(t, h, "mc")
	h.Event(event(9, "exit"))
	require.EqualValues(t, 9, next(t, later)[0].Seq)
}

func TestNewerStatsReplaceQueuedOnes(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{Now: func() time.Time { return epoch }})
	l := listen(t, h, "mc")
	h.Stats("mc", v1.Stats{CPUUsage: 1})
	h.Stats("mc", v1.Stats{CPUUsage: 2})
	h.Stats("other", v1.Stats{CPUUsage: 3})
	require.Equal(t, []message{{Event: "stats", CPU: 2, Time: epoch}}, next(t, l))
}

func TestStatsHaveTheFieldsOfTheInterface(t *testing.T) {
	disk := int64(9)
	s := v1.Stats{CPUUsage: 1.5, MemoryUsage: 2, MemoryLimit: 3, NetworkRx: 4, NetworkTx: 5, BlockRead: 6, BlockWrite: 7, Pids: 8, Uptime: 10, DiskUsage: &disk}
	require.JSONEq(t, `{"event":"stats","container":"mc","cpu_usage":1.5,"memory_usage":2,"memory_limit":3,"network_rx":4,"network_tx":5,
		"block_read":6,"block_write":7,"pids":8,"uptime":10,"disk_usage":9,"time":"2026-01-02T03:04:05Z"}`, string(stream.StatsMessage("mc", s, epoch).Encode()))
	require.Contains(t, string(stream.StatsMessage("", v1.Stats{}, epoch).Encode()), `"disk_usage":null`)
}

func TestListenedFollowsListeners(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	ids, all, changed := h.Listened()
	require.Empty(t, ids)
	require.False(t, all)
	a, b, node := listen(t, h, "a"), listen(t, h, "b"), listen(t, h, "")
	<-changed
	ids, all, changed = h.Listened()
	slices.Sort(ids)
	require.Equal(t, []string{"a", "b"}, ids)
	require.True(t, all)
	a.Close()
	a.Close()
	node.Close()
	<-changed
	ids, all, _ = h.Listened()
	require.Equal(t, []string{"b"}, ids)
	require.False(t, all)
	b.Close()
	ids, _, _ = h.Listened()
	require.Empty(t, ids)
}

func TestCloseEndsListenersAfterTheirMessages(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	l := listen(t, h, "mc")
	h.Event(event(1, "exit"))
	write(t, h, lines(2, 3))
	h.Close()
	require.Len(t, next(t, l), 2)
	_, err := take(t.Context(), l)
	require.ErrorIs(t, err, stream.ErrClosed)
	_, err = h.Listen("mc")
	require.ErrorIs(t, err, stream.ErrClosed)
	require.NoError(t, h.Append("mc", server, lines(3, 4)))
}

func TestNextWaits(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := stream.New(dir, stream.Options{})
		l, err := h.Listen("mc")
		require.NoError(t, err)
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err = take(ctx, l)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(began))
		time.AfterFunc(time.Minute, func() { h.Event(event(1, "exit")) })
		out, err := take(t.Context(), l)
		require.NoError(t, err)
		require.Len(t, out, 1)
	})
}

// TestIdleClientsCostLittleMemory has a hundred clients of a flooding console, each
// with a batch that it cannot send.
func TestIdleClientsCostLittleMemory(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	held := make([][]stream.Message, 100)
	var stuck []*stream.Listener
	for range held {
		stuck = append(stuck, listen(t, h, "mc"))
	}
	before := heap()
	for i := range 1000 {
		write(t, h, lines(i*1000, i*1000+1000))
		if i == 500 {
			for j, l := range stuck {
				out, err := take(t.Context(), l)
				require.NoError(t, err)
				held[j] = out
			}
		}
	}
	grown := heap() - before
	runtime.KeepAlive(held)
	runtime.KeepAlive(stuck)
	require.Less(t, grown, int64(32<<20))
	t.Logf("memory grew by %d KiB", grown>>10)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
