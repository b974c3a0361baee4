package stream_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
)

// sent is a line of a history.
type sent struct {
	Time time.Time
	Data string
}

// sentLines returns the lines of a history of a container.
func sentLines(t *testing.T, h *stream.Hub, role string, n int, since time.Time) (list []sent) {
	t.Helper()
	x, err := h.ReadHistory("mc", stream.HistoryQuery{Role: role, Tail: n, Since: since})
	require.NoError(t, err)
	return asReceived(x)
}

// asReceived returns the lines of a history as a client decodes them.
func asReceived(x stream.History) []sent {
	list := []sent{}
	for _, l := range x.Lines {
		list = append(list, sent{l.Time, string([]rune(string(l.Data)))})
	}
	return list
}

// textOf returns the text of the message of a history.
func textOf(t *testing.T, x stream.History) string {
	t.Helper()
	return decode(t, stream.LogsMessage("", x, epoch)).Data
}

// tail returns the last lines of a server's history.
func tail(t *testing.T, h *stream.Hub, n int) []sent {
	t.Helper()
	return sentLines(t, h, server, n, time.Time{})
}

// asSent returns lines as a history has them.
func asSent(list ...v1.Line) []sent {
	all := []sent{}
	for _, l := range list {
		all = append(all, sent{l.Time, string([]rune(string(l.Data)))})
	}
	return all
}

// joined returns all lines of some consoles in the order of their times. A line
// that was written in parts has the time of the first.
func joined(t *testing.T, h *stream.Hub, roles ...string) (all []v1.Line) {
	t.Helper()
	for _, role := range roles {
		partial := false
		require.NoError(t, h.Since(t.Context(), "mc", role, time.Time{}, func(l v1.Line) bool {
			if partial {
				all[len(all)-1].Data = append(all[len(all)-1].Data, l.Data...)
			} else {
				l.Data = bytes.Clone(l.Data)
				all = append(all, l)
			}
			partial = l.Partial
			return true
		}))
	}
	slices.SortStableFunc(all, func(a, b v1.Line) int { return a.Time.Compare(b.Time) })
	return all
}

// TestHistoryIsTheEndOfTheJournal compares histories with the records of the journal.
func TestHistoryIsTheEndOfTheJournal(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{FileSize: 300 << 10, Files: 3})
	defer h.Close()
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(1_000_000, 0).UTC()
	alphabet := []string{"a", "\x01", "\"", "\\", "\n", "\xff", "é", "€", "𝄞", " long text without anything special"}
	for i := range 800 {
		role := []string{v1.InstallConsole, v1.ServerConsole}[i/20%2]
		var text bytes.Buffer
		for range random.IntN(200) {
			text.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		if random.IntN(50) == 0 {
			text.Write(bytes.Repeat([]byte{1}, 40<<10)) // longer than a record
		}
		now = now.Add(time.Second)
		require.NoError(t, h.Append("mc", role, parts(v1.Line{Time: now, Data: text.Bytes()})))
	}
	for _, role := range []string{"", v1.InstallConsole, v1.ServerConsole} {
		roles := []string{role}
		if role == "" {
			roles = []string{v1.InstallConsole, v1.ServerConsole}
		}
		for _, n := range []int{0, 1, 7, 100, 10_000} {
			want := joined(t, h, roles...)
			want = want[max(0, len(want)-n):]
			require.Equal(t, asSent(want...), sentLines(t, h, role, n, time.Time{}), fmt.Sprint(role, n))
			var text bytes.Buffer
			for _, l := range want {
				fmt.Fprintf(&text, "%s\n", l.Data)
			}
			x, err := h.ReadHistory("mc", stream.HistoryQuery{Role: role, Tail: n})
			require.NoError(t, err)
			require.Equal(t, string([]rune(text.String())), textOf(t, x))
		}
	}
}

func TestHistoryOfALargeJournal(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	const n = 50_000
	write(t, h, lines(0, n))
	require.Equal(t, asSent(lines(n-10_000, n)...), tail(t, h, n), "10,000 at most")
	require.Equal(t, asSent(lines(n-1, n)...), tail(t, h, 1))
	require.Empty(t, tail(t, h, 0))
	require.Empty(t, tail(t, h, -1))
	require.Equal(t, asSent(lines(n-17, n)...), sentLines(t, h, server, 10_000, line(n-18).Time))
}

func TestHistoryIsBoundedInBytes(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	big := bytes.Repeat([]byte("x"), 16<<10)
	for range 600 {
		write(t, h, []v1.Line{{Time: epoch, Data: big}})
	}
	require.Len(t, tail(t, h, 10_000), 255) // 4 MiB, with 64 bytes for each line
}

func TestPartialLinesAreOneLineOfHistory(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	part := func(i int, data string, partial bool) v1.Line {
		return v1.Line{Time: line(i).Time, Data: []byte(data), Partial: partial}
	}
	write(t, h, []v1.Line{part(0, "a", false), part(1, "b", true), part(2, "c", true)})
	require.Equal(t, asSent(part(0, "a", false), part(1, "bc", true)), tail(t, h, 2))
	write(t, h, []v1.Line{part(3, "d", false), part(4, "e", true)})
	require.Equal(t, asSent(part(1, "bcd", false), part(4, "e", true)), tail(t, h, 2))
	require.Equal(t, asSent(part(4, "e", true)), tail(t, h, 1))
	message := v1.Line{Time: line(5).Time, Data: []byte("message"), Message: true}
	write(t, h, []v1.Line{message, part(6, "f", false)})
	got := tail(t, h, 10)
	require.Equal(t, asSent(message, part(6, "f", false)), got[len(got)-2:])
}

func TestBothConsolesAreOneHistory(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	require.NoError(t, h.Append("mc", v1.InstallConsole, lines(0, 3)))
	require.NoError(t, h.Append("mc", server, lines(3, 6)))
	require.NoError(t, h.Append("mc", v1.InstallConsole, lines(6, 9)))
	require.Equal(t, asSent(lines(4, 9)...), sentLines(t, h, "", 5, time.Time{}))
	require.Equal(t, asSent(append(lines(1, 3), lines(6, 9)...)...), sentLines(t, h, v1.InstallConsole, 5, time.Time{}))
}

// TestPlainHistoryReportsLostLines rotates files away while all lines are read.
func TestPlainHistoryReportsLostLines(t *testing.T) {
	for _, more := range []int{0, 2500, 8000} {
		h := stream.New(t.TempDir(), stream.Options{FileSize: 64 << 10})
		for i := 0; i < 2500; i += 100 {
			write(t, h, lines(i, i+100))
		}
		x, err := h.ReadAll(t.Context(), "mc")
		require.NoError(t, err)
		first := make([]byte, 1000)
		_, err = io.ReadFull(x, first)
		require.NoError(t, err)
		for i := 2500; i < 2500+more; i += 100 {
			write(t, h, lines(i, i+100))
		}
		write(t, h, lines(20_000, 20_001)) // is behind the end of the history
		rest, err := io.ReadAll(x)
		require.NoError(t, err)
		text := string(first) + string(rest)
		require.Equal(t, min(more, 1), strings.Count(text, "[berth: console lines are missing"), more)
		require.NotContains(t, text, "line 20000")
		require.NoError(t, x.Close())
	}
}
