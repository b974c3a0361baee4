package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
)

// resumer is a client that comes back with its last cursor.
type resumer struct {
	line    stream.Cursor
	text    strings.Builder
	missing []string // texts of messages about missing lines
}

// connect reads some batches of a new listener, or all that are waiting.
func (r *resumer) connect(t *testing.T, h *stream.Hub, batches int) {
	t.Helper()
	l, missing, err := h.ListenFrom(t.Context(), "mc", r.line)
	require.NoError(t, err)
	defer l.Close()
	if missing != "" {
		r.missing = append(r.missing, missing)
		r.line = l.Line()
	}
	for range batches {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		out, err := take(ctx, l)
		cancel()
		if err != nil {
			return
		}
		for _, m := range out {
			r.receive(t, m)
		}
	}
}

func (r *resumer) receive(t *testing.T, m stream.Message) {
	t.Helper()
	var got struct{ Data, Line string }
	require.NoError(t, json.Unmarshal(m.Encode(), &got))
	line, ok := stream.ParseCursor(got.Line)
	require.True(t, ok, "%s", m.Encode())
	r.line = line
	if m.Event == stream.EventConsole {
		r.text.WriteString(got.Data)
	}
}

// all reads until nothing is waiting.
func (r *resumer) all(t *testing.T, h *stream.Hub) {
	t.Helper()
	for was := (stream.Cursor{Offset: -1}); was != r.line; {
		was = r.line
		r.connect(t, h, 1000)
	}
}

// TestClientResumesBehindItsLastLine cuts a client and restarts the hub at random, while the installer
// and the server print by turns, with equal times, long lines and rotation.
func TestClientResumesBehindItsLastLine(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(5, 6))
	h := stream.New(dir, stream.Options{FileSize: 400 << 10})
	var r resumer
	var want strings.Builder
	for i := range 3000 {
		role := server
		if i%300 < 50 {
			role = v1.InstallConsole
		}
		var list []v1.Line
		for j := range 1 + random.IntN(10) {
			text := fmt.Sprintf("%d.%d!", i, j)
			if random.IntN(200) == 0 {
				text = strings.Repeat("€", 20<<10) + text // several records
			}
			list = append(list, v1.Line{Time: line(i / 7).Time, Data: []byte(text)})
			want.WriteString(text + "\n")
		}
		require.NoError(t, h.Append("mc", role, parts(list...)))
		switch random.IntN(30) {
		case 0:
			require.NoError(t, h.Release("mc"))
			h = stream.New(dir, stream.Options{FileSize: 400 << 10})
		case 1, 2, 3, 4, 5:
			r.connect(t, h, 1+random.IntN(40))
		}
	}
	r.all(t, h)
	require.Empty(t, r.missing)
	require.True(t, want.String() == r.text.String())
}

// TestTimesRiseStrictly has lines of both consoles with equal and falling times, and
// restarts in between.
func TestTimesRiseStrictly(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		h := stream.New(dir, stream.Options{})
		require.NoError(t, h.Append("mc", v1.InstallConsole, []v1.Line{line(5), line(5), line(4)}))
		require.NoError(t, h.Append("mc", server, []v1.Line{line(3), line(5), line(9), line(9)}))
		require.NoError(t, h.Append("mc", v1.InstallConsole, []v1.Line{line(9)}))
	}
	h := stream.New(dir, stream.Options{})
	got := sentLines(t, h, "", 100, time.Time{})
	require.Len(t, got, 24)
	for i := range got[1:] {
		require.Greater(t, got[i+1].Time, got[i].Time, i)
	}
	require.Equal(t, line(5).Time, got[0].Time)
	var engine []time.Time
	for _, l := range since(t, h, time.Time{}) {
		engine = append(engine, l.Time)
	}
	require.Equal(t, []time.Time{line(3).Time, line(5).Time, line(9).Time, line(9).Time}, engine[:4], "the reader of the engine resumes with its times")
}

// TestPagesHaveEachLineOnce pages through two rotated consoles, backward and forward.
func TestPagesHaveEachLineOnce(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{FileSize: 100 << 10})
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 3000 {
		role := []string{v1.InstallConsole, server}[i/100%2]
		l := v1.Line{Time: line(i / 5).Time, Data: fmt.Appendf(nil, "%s%d", strings.Repeat("x", random.IntN(100)), i)}
		if random.IntN(300) == 0 {
			l.Data = append(bytes.Repeat([]byte("y"), 40<<10), l.Data...)
		}
		require.NoError(t, h.Append("mc", role, parts(l)))
	}
	for _, role := range []string{"", v1.InstallConsole, server} {
		want := sentLines(t, h, role, 10_000, time.Time{})
		require.Less(t, len(want), 3000, "some were rotated away")
		for _, n := range []int{1, 7, 500} {
			require.Equal(t, want, pagesBackward(t, h, role, n))
			require.Equal(t, want, pagesForward(t, h, role, n))
		}
	}
}

// pagesBackward reads a console in pages of n lines, each before the page read last.
func pagesBackward(t *testing.T, h *stream.Hub, role string, n int) (all []sent) {
	t.Helper()
	for before := (time.Time{}); ; before = all[0].Time {
		x, err := h.ReadHistory("mc", stream.HistoryQuery{Role: role, Tail: n, Before: before})
		require.NoError(t, err)
		page := asReceived(x)
		if len(page) == 0 {
			return all
		}
		all = append(page, all...)
	}
}

// pagesForward reads a console in pages of n lines, each behind the page read last.
func pagesForward(t *testing.T, h *stream.Hub, role string, n int) (all []sent) {
	t.Helper()
	for at := (stream.Cursor{}); ; {
		x, err := h.ReadOn("mc", role, at, n)
		require.NoError(t, err)
		page := asReceived(x)
		if len(page) == 0 {
			return all
		}
		at, all = x.Line, append(all, page...)
	}
}

// cursorOf returns the cursor of the end of a console.
func cursorOf(t *testing.T, h *stream.Hub) stream.Cursor {
	t.Helper()
	x, err := h.ReadHistory("mc", stream.HistoryQuery{})
	require.NoError(t, err)
	return x.Line
}

// TestUnknownCursorSkipsNothing has cursors of lines that are no longer kept, or that
// this container never had.
func TestUnknownCursorSkipsNothing(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{FileSize: 64 << 10})
	const n = 10_000
	at := map[int]stream.Cursor{}
	for i := 0; i < n; i += 10 {
		write(t, h, lines(i, i+10))
		at[i+9] = cursorOf(t, h)
	}
	kept := since(t, h, time.Time{})
	first := n - len(kept)
	all := strings.Join(numbered(first, n), "\n") + "\n"
	for name, x := range map[string]struct {
		from    stream.Cursor
		missing string
	}{
		"nothing read":        {stream.Cursor{}, "up to"},
		"removed":             {at[9], "up to " + line(first).Time.Add(-1).Format(time.RFC3339Nano) + " are missing"},
		"the last removed":    {at[first-1], ""},
		"later than all":      {stream.Cursor{Journal: at[9].Journal, Offset: at[n-1].Offset + 5}, "no console line at since_line"},
		"the end of time":     {stream.Cursor{Journal: at[9].Journal, Offset: 1<<63 - 1}, "no console line at since_line"},
		"between two lines":   {stream.Cursor{Journal: at[9].Journal, Offset: at[n-1].Offset - 1}, "no console line at since_line"},
		"of another creation": {stream.Cursor{Journal: "abc", Offset: at[9].Offset}, "no console line at since_line"},
	} {
		r := resumer{line: x.from}
		r.all(t, h)
		require.Equal(t, x.missing != "", len(r.missing) == 1, name, r.missing)
		require.Contains(t, strings.Join(r.missing, ""), x.missing, name)
		require.Equal(t, all, r.text.String(), name)
		history, err := h.ReadOn("mc", "", x.from, 10_000)
		require.NoError(t, err)
		require.Equal(t, strings.Join(r.missing, ""), history.Missing, name)
		require.Len(t, historyLines(history), len(kept), name)
	}
}

// TestDroppedLinesNameTheirCursors lets a client fall behind the journal: the message
// names the cursors before and behind the lines that it has missed.
func TestDroppedLinesNameTheirCursors(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{FileSize: 64 << 10})
	l := listen(t, h, "mc")
	write(t, h, lines(0, 10))
	var before resumer
	for _, m := range must(t, l) {
		before.receive(t, m)
	}
	for i := 10; i < 20_000; i += 10 {
		write(t, h, lines(i, i+10))
	}
	got := must(t, l)[0]
	require.Equal(t, before.line.String(), got.SinceLine)
	from, _ := stream.ParseCursor(got.Line)
	require.NotEqual(t, before.line, from)
	dropped := 0
	_, err := fmt.Sscanf(*got.Data, "%d console lines were dropped", &dropped)
	require.NoError(t, err)
	x, err := h.ReadOn("mc", "", from, 1)
	require.NoError(t, err)
	require.Equal(t, line(10+dropped).Time, asReceived(x)[0].Time, "the cursor is behind the last of them")
	require.Empty(t, x.Missing)
}

// TestInstallLogsAreKept has a server that prints more than is kept: pages of its installation are
// complete, and name no line of the server as missing.
func TestInstallLogsAreKept(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{FileSize: 64 << 10})
	require.NoError(t, h.Append("mc", v1.InstallConsole, lines(0, 10)))
	for i := 10; i < 10_000; i += 10 {
		write(t, h, lines(i, i+10))
	}
	require.Equal(t, asSent(lines(0, 10)...), pagesForward(t, h, v1.InstallConsole, 3))
	require.Equal(t, asSent(lines(0, 10)...), pagesBackward(t, h, v1.InstallConsole, 3))
	x, err := h.ReadOn("mc", v1.InstallConsole, stream.Cursor{}, 10)
	require.NoError(t, err)
	require.Empty(t, x.Missing)
	both, err := h.ReadOn("mc", "", stream.Cursor{}, 10_000)
	require.NoError(t, err)
	require.Len(t, asReceived(both), 10, "the page ends where lines are missing")
	both, err = h.ReadOn("mc", "", both.Line, 10_000)
	require.NoError(t, err)
	require.Contains(t, both.Missing, "are missing")
}

func must(t *testing.T, l *stream.Listener) []stream.Message {
	t.Helper()
	out, err := take(t.Context(), l)
	require.NoError(t, err)
	return out
}

func TestHistoryHasTheTimesOfItsLines(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	const n = 5000
	write(t, h, lines(0, n))
	x, err := h.ReadHistory("mc", stream.HistoryQuery{Tail: n})
	require.NoError(t, err)
	m := stream.LogsMessage("mc", x, epoch)
	require.Equal(t, n, strings.Count(*m.Data, "\n"))
	require.Len(t, m.Times, n)
	for i, at := range m.Times {
		require.Equal(t, line(i).Time, at)
	}
	none, err := h.ReadHistory("mc", stream.HistoryQuery{})
	require.NoError(t, err)
	require.Contains(t, string(stream.LogsMessage("", none, epoch).Encode()), `"times":[]`)
}

func TestAllLinesAsTheyWerePrinted(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	want := "\x01\xff\"\\€\n" + strings.Repeat("é", 60_000) + "\nend\n"
	for line := range strings.Lines(want) {
		write(t, h, []v1.Line{{Time: epoch, Data: []byte(strings.TrimSuffix(line, "\n"))}})
	}
	x, err := h.ReadAll(t.Context(), "mc")
	require.NoError(t, err)
	got, err := io.ReadAll(x)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
	for range 3 {
		_, err := h.ReadAll(t.Context(), "mc")
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.ReadAll(ctx, "mc")
	require.ErrorIs(t, err, stream.ErrBusy)
	require.NoError(t, x.Close())
	_, err = h.ReadAll(t.Context(), "mc")
	require.NoError(t, err)
}
