package stream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
)

// reader collects the messages of a listener.
type reader struct {
	lines   []string
	dropped int
	last    time.Time
}

// next reads the messages that are waiting.
func (r *reader) next(ctx context.Context, t *testing.T, l *stream.Listener) bool {
	out, err := take(ctx, l)
	if err != nil {
		return false
	}
	for _, m := range out {
		got := decode(t, m)
		switch {
		case m.Event == stream.EventConsole:
			r.lines = append(r.lines, strings.Split(strings.TrimSuffix(got.Data, "\n"), "\n")...)
			r.last = got.Time
		case strings.Contains(got.Data, "dropped"):
			n := 0
			_, err := fmt.Sscanf(got.Data, "%d console lines", &n)
			require.NoError(t, err)
			r.dropped += n
		}
	}
	return true
}

func numbered(from, to int) []string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("line %d", i))
	}
	return list
}

// TestHistoryAndLiveLinesHaveNoGap lets clients connect while a console is written
// and rotated: history and live lines together are every line once, in order.
func TestHistoryAndLiveLinesHaveNoGap(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{FileSize: 1 << 20, Files: 3})
	const n, clients = 20_000, 40
	rounds := make(chan int, n)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(rounds)
		for i := 0; i < n; {
			some := min(1+rand.N(200), n-i)
			write(t, h, lines(i, i+some))
			i += some
			rounds <- i
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range clients {
		<-rounds
		all.Go(func() {
			l, err := h.Listen("mc")
			if !assertNoError(t, err) {
				return
			}
			defer l.Close()
			past, err := l.ReadHistory(10_000)
			if !assertNoError(t, err) {
				return
			}
			r := reader{lines: historyLines(past)}
			for len(r.lines) == 0 || r.lines[len(r.lines)-1] != fmt.Sprintf("line %d", n-1) {
				if !r.next(ctx, t, l) {
					break
				}
			}
			if len(r.lines) < 10_000 {
				assertEqual(t, numbered(0, n), r.lines)
			} else {
				assertEqual(t, numbered(n-len(r.lines), n), r.lines)
			}
		})
	}
	all.Wait()
}

// historyLines returns the texts of a history.
func historyLines(x stream.History) (list []string) {
	for _, l := range x.Lines {
		list = append(list, string(l.Data))
	}
	return list
}

func assertNoError(t *testing.T, err error) bool {
	if err != nil {
		t.Errorf("unexpected error: %v", err)
	}
	return err == nil
}

// assertEqual reports the first difference only.
func assertEqual(t *testing.T, want, got []string) {
	t.Helper()
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("line %d of %d (%d wanted) is not %q", i, len(got), len(want), want[i])
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, %d wanted", len(got), len(want))
	}
}

// TestClientFarBehindGetsEveryLine lets a client begin to read after
// everything was printed.
func TestClientFarBehindGetsEveryLine(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	l, err := h.Listen("mc")
	require.NoError(t, err)
	defer l.Close()
	const n = 100_000
	for i := 0; i < n; i += 1000 {
		write(t, h, lines(i, i+1000))
	}
	var r reader
	for len(r.lines) < n && r.next(t.Context(), t, l) {
	}
	assertEqual(t, numbered(0, n), r.lines)
	require.Equal(t, line(n-1).Time, r.last)
	require.Zero(t, r.dropped)
}

// TestSlowClientReceivesTheNumberOfDroppedLines lets a client fall behind the journal
// again and again: the lines that it received or that were reported as dropped are
// all lines.
func TestSlowClientReceivesTheNumberOfDroppedLines(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := stream.New(t.TempDir(), stream.Options{FileSize: 64 << 10, Registerer: registry})
	slow, err := h.Listen("mc")
	require.NoError(t, err)
	defer slow.Close()
	good, err := h.Listen("mc")
	require.NoError(t, err)
	defer good.Close()
	const n = 60_000
	var rs, rg reader
	for i := 0; i < n; i += 100 {
		write(t, h, lines(i, i+100))
		require.True(t, rg.next(t.Context(), t, good))
		if i%20_000 == 10_000 {
			require.True(t, rs.next(t.Context(), t, slow))
		}
	}
	assertEqual(t, numbered(0, n), rg.lines)
	for len(rs.lines)+rs.dropped < n {
		require.True(t, rs.next(t.Context(), t, slow))
	}
	require.Equal(t, n, len(rs.lines)+rs.dropped)
	require.Positive(t, rs.dropped)
	require.Equal(t, fmt.Sprintf("line %d", n-1), rs.lines[len(rs.lines)-1])
	require.InDelta(t, rs.dropped, testutil.ToFloat64(collect(t, registry)), 0)
	at := -1
	for _, text := range rs.lines {
		i := 0
		_, err := fmt.Sscanf(text, "line %d", &i)
		require.NoError(t, err)
		require.Greater(t, i, at)
		at = i
	}
}

// collect returns a collector with the value of the registry's counter of dropped lines.
func collect(t *testing.T, r *prometheus.Registry) prometheus.Collector {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	for _, f := range families {
		if f.GetName() == "berth_console_lines_dropped_total" {
			c.Add(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return c
}

func TestNodeWideListenerGetsEveryConsole(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	require.NoError(t, h.Append("a", server, lines(0, 1)))
	l, err := h.Listen("")
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, h.Append("a", server, lines(1, 2)))
	require.NoError(t, h.Append("b", v1.InstallConsole, lines(0, 2)))
	h.Event(v1.Event{Seq: 7, Time: line(5).Time, Container: "c", Event: v1.EventState, Data: "running"})
	h.Stats("b", v1.Stats{CPUUsage: 12.5})
	out, err := take(t.Context(), l)
	require.NoError(t, err)
	var got []message
	for _, m := range out {
		d := decode(t, m)
		if m.Event == stream.EventStats {
			d.Time = time.Time{}
		}
		got = append(got, d)
	}
	require.Equal(t, []message{
		{Event: "console", Container: "a", Data: "line 1\n", Time: line(1).Time},
		{Event: "console", Container: "b", Data: "line 0\nline 1\n", Time: line(1).Time},
		{Event: "event", Container: "c", Data: "running", Time: line(5).Time, Seq: 7},
		{Event: "stats", Container: "b", CPU: 12.5},
	}, got)
}
