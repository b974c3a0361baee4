package e2e_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/hack/test/berthtest"
)

// cutReader reads a console in many short connections, each behind the line that it
// has received last.
type cutReader struct {
	line   string
	output strings.Builder
}

// read reads until the connection ends, or for a time.
func (r *cutReader) read(t *testing.T, b *berthtest.Berth, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	s, err := b.API.Containers().Open(ctx, "mc", client.OpenOptions{SinceLine: r.line})
	if err != nil {
		return // berth is being killed, or the time is over
	}
	defer s.Close()
	for {
		m, err := s.Next()
		if err != nil {
			return
		}
		require.Empty(t, m.SinceLine, m.Data)
		if m.Line != "" {
			r.line = m.Line
		}
		if m.Event == client.EventConsole || m.Event == client.EventLogs {
			r.output.WriteString(m.Data)
		}
	}
}

// TestConsoleCursorsMissNothing cuts a client at random points, and kills berth, while a
// container prints numbers: the client receives each once. Pages backward, pages
// forward and the download have the same lines.
func TestConsoleCursorsMissNothing(t *testing.T) {
	t.Parallel()
	b, random := berthtest.Start(t, berthtest.Options{}), dice(t)
	b.Started(t, "mc", berthtest.Spec{"startup_command": numbers([2]int{10, 10_000})})
	r := cutReader{line: "0-0"}
	const cuts, kills = 50, 4
	for i := range cuts {
		r.read(t, b, time.Duration(random.IntN(200))*time.Millisecond)
		if i%(cuts/kills) == 5 {
			b.Restart(t)
		}
	}
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	n := lastNumber(t, b, "mc")
	awaitLine(t, b, "mc", n)
	berthtest.Until(t, wait, "the last line is received", func() bool {
		r.read(t, b, 300*time.Millisecond)
		return strings.HasSuffix(r.output.String(), "\n"+strconv.Itoa(n)+"\n")
	})
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i + 1)
	}
	requireLines(t, all, strings.Split(strings.TrimSuffix(r.output.String(), "\n"), "\n"))
	requireLines(t, all, backward(t, b, n/7))
	requireLines(t, all, forward(t, b, n/7))
	var content strings.Builder
	require.NoError(t, b.API.Containers().LogContent(t.Context(), "mc", &content))
	require.True(t, r.output.String() == content.String())
	t.Logf("%d lines over %d cuts and %d kills, each received once", n, cuts, kills)
}

// requireLines reports the first difference only.
func requireLines(t *testing.T, want, got []string) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		require.Equal(t, want[i], got[i], "line %d", i+1)
	}
	require.Len(t, got, len(want))
}

// backward reads the console in pages, each before the one read last. Times fall
// strictly.
func backward(t *testing.T, b *berthtest.Berth, size int) (all []string) {
	t.Helper()
	var before time.Time
	for {
		logs, err := b.API.Containers().Logs(t.Context(), "mc", client.LogOptions{Tail: min(size, 10_000), Before: before})
		require.NoError(t, err)
		if len(logs.Lines) == 0 {
			return all
		}
		var page []string
		for i, l := range logs.Lines {
			require.True(t, i == 0 || l.Time.After(logs.Lines[i-1].Time))
			page = append(page, l.Data)
		}
		before, all = logs.Lines[0].Time, append(page, all...)
	}
}

// forward reads the console in pages, each behind the one read last.
func forward(t *testing.T, b *berthtest.Berth, size int) (all []string) {
	t.Helper()
	line := "0-0"
	for {
		logs, err := b.API.Containers().Logs(t.Context(), "mc", client.LogOptions{Tail: min(size, 10_000), SinceLine: line})
		require.NoError(t, err)
		require.Empty(t, logs.Missing)
		if len(logs.Lines) == 0 {
			return all
		}
		for _, l := range logs.Lines {
			all = append(all, l.Data)
		}
		line = logs.Line
	}
}
