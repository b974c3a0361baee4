package stream_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
)

const server = v1.ServerConsole

func write(t *testing.T, h *stream.Hub, list []v1.Line) {
	t.Helper()
	require.NoError(t, h.Append("mc", server, list))
}

func tail(t *testing.T, h *stream.Hub, n int) []v1.Line {
	t.Helper()
	list, err := h.Tail("mc", server, n, time.Time{})
	require.NoError(t, err)
	return list
}

func since(t *testing.T, h *stream.Hub, from time.Time) []v1.Line {
	t.Helper()
	var list []v1.Line
	require.NoError(t, h.Since(t.Context(), "mc", server, from, func(l v1.Line) bool {
		l.Data = bytes.Clone(l.Data)
		list = append(list, l)
		return true
	}))
	return list
}

func begin(t *testing.T, h *stream.Hub, container string) v1.Resume {
	t.Helper()
	r, err := h.Begin("mc", server, container)
	require.NoError(t, err)
	return r
}

func TestJournalIsReadByAnotherHub(t *testing.T) {
	dir := t.TempDir()
	h := stream.New(dir, stream.Options{})
	require.Equal(t, v1.Resume{Fresh: true}, begin(t, h, "c1"))
	write(t, h, lines(0, 100))

	killed := stream.New(dir, stream.Options{})
	require.Equal(t, v1.Resume{Last: line(99).Time, Container: "c1"}, begin(t, killed, "c1"))
	require.Equal(t, lines(95, 100), tail(t, killed, 5))
	write(t, killed, lines(100, 110))
	require.NoError(t, killed.End("mc", server, true))

	ended := stream.New(dir, stream.Options{})
	require.Equal(t, v1.Resume{Last: line(109).Time, Container: "c1", Whole: true, Fresh: true}, begin(t, ended, "c2"))
	require.Equal(t, lines(0, 110), tail(t, ended, 1000))

	fresh := stream.New(dir, stream.Options{})
	require.Equal(t, v1.Resume{Last: line(109).Time, Container: "c2", Fresh: true}, begin(t, fresh, "c2"))
	late := v1.Line{Time: line(200).Time, Data: []byte("later")}
	write(t, fresh, []v1.Line{late, line(150), {Time: line(300).Time, Data: []byte("said"), Message: true}})
	require.Equal(t, v1.Resume{Last: late.Time, Container: "c2"}, begin(t, stream.New(dir, stream.Options{}), "c2"))
}

// TestALostNoteHidesNoLines has lines of a container, but no note that they are its.
func TestALostNoteHidesNoLines(t *testing.T) {
	for _, note := range []string{"", "c1", "c1 open\n", "what is this\n"} {
		dir := t.TempDir()
		h := stream.New(dir, stream.Options{})
		begin(t, h, "c1")
		write(t, h, lines(0, 3))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "mc", "server.run"), []byte(note), 0o600))
		for range 2 {
			r := begin(t, stream.New(dir, stream.Options{}), "c1")
			require.False(t, r.Fresh)
			require.Equal(t, line(2).Time, r.Last)
		}
	}
}

func TestJournalIsPrivate(t *testing.T) {
	dir := t.TempDir()
	h := stream.New(dir, stream.Options{})
	begin(t, h, "c1")
	write(t, h, lines(0, 1))
	info, err := os.Stat(filepath.Join(dir, "mc"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	for _, name := range []string{"server.log", "server.run"} {
		info, err := os.Stat(filepath.Join(dir, "mc", name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
}

func TestTornJournalIsCutAtTheLastWholeLine(t *testing.T) {
	whole := func(i int) string {
		return line(i).Time.Format("2006-01-02T15:04:05.000000000Z") + " F line " + string(rune('0'+i)) + "\n"
	}
	for name, torn := range map[string]string{
		"part of a line": whole(3)[:37],
		"no line feed":   strings.TrimSuffix(whole(3), "\n"),
		"zeroes":         strings.Repeat("\x00", 300_000),
		"zeroes, ended":  strings.Repeat("\x00", 5000) + "\n",
		"garbage":        "what\nis\n\nthis",
		"bad time":       strings.Replace(whole(3), "-", "x", 1),
		"nothing":        "",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "mc", "server.log")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(whole(0)+whole(1)+whole(2)+torn), 0o600))
			h := stream.New(dir, stream.Options{})
			require.Equal(t, lines(0, 3), tail(t, h, 10))
			require.Equal(t, line(2).Time, begin(t, h, "c1").Last)
			write(t, h, lines(3, 5))
			require.Equal(t, lines(0, 5), tail(t, h, 10))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, whole(0)+whole(1)+whole(2)+whole(3)+whole(4), string(got))
		})
	}
}

func TestDamageInTheMiddleCostsOnlyItself(t *testing.T) {
	dir := t.TempDir()
	h := stream.New(dir, stream.Options{})
	write(t, h, lines(0, 5))
	path := filepath.Join(dir, "mc", "server.log")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	rows := bytes.SplitAfter(text, []byte("\n"))
	copy(rows[2], "damaged")
	require.NoError(t, os.WriteFile(path, bytes.Join(rows, nil), 0o600))
	want := append(lines(0, 2), lines(3, 5)...)
	again := stream.New(dir, stream.Options{})
	require.Equal(t, want, tail(t, again, 10))
	require.Equal(t, want, since(t, again, time.Time{}))
}

func TestJournalIsRotated(t *testing.T) {
	dir := t.TempDir()
	o := stream.Options{FileSize: 4096, Files: 3}
	h := stream.New(dir, o)
	begin(t, h, "c1")
	const n = 2000
	for i := 0; i < n; i += 10 {
		write(t, h, lines(i, i+10))
	}
	names, err := filepath.Glob(filepath.Join(dir, "mc", "server.log*"))
	require.NoError(t, err)
	require.Len(t, names, 3)
	for _, name := range names {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(4096))
	}
	kept := tail(t, h, n)
	require.Greater(t, len(kept), 150)
	require.Equal(t, lines(n-len(kept), n), kept)
	require.Equal(t, kept, since(t, h, time.Time{}))
	require.Equal(t, kept[7:], since(t, h, kept[7].Time))
	require.Empty(t, since(t, h, line(n).Time))

	again := stream.New(dir, o)
	require.Equal(t, kept, tail(t, again, n))
	write(t, again, lines(n, n+500))
	require.Equal(t, line(n+499), tail(t, again, 1)[0])

	fewer := stream.New(dir, stream.Options{FileSize: 4096, Files: 1})
	write(t, fewer, lines(n+500, n+501))
	names, err = filepath.Glob(filepath.Join(dir, "mc", "server.log*"))
	require.NoError(t, err)
	require.Len(t, names, 1)
}

func TestTailOfALargeJournal(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	const n = 50_000
	write(t, h, lines(0, n))
	require.Equal(t, lines(n-10_000, n), tail(t, h, n), "10,000 at most")
	require.Equal(t, lines(n-1, n), tail(t, h, 1))
	require.Empty(t, tail(t, h, 0))
	require.Empty(t, tail(t, h, -1))
	got, err := h.Tail("mc", server, 10_000, line(n-17).Time)
	require.NoError(t, err)
	require.Equal(t, lines(n-17, n), got)
	for _, from := range []int{0, 1, 12_345, n - 1} {
		require.Equal(t, lines(from, n), since(t, h, line(from).Time))
	}
	count := 0
	require.NoError(t, h.Since(t.Context(), "mc", server, time.Time{}, func(v1.Line) bool { count++; return count < 3 }))
	require.Equal(t, 3, count)
}

func TestTailIsBoundedInBytes(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	big := bytes.Repeat([]byte("x"), 16<<10)
	for range 600 {
		write(t, h, []v1.Line{{Time: epoch, Data: big}})
	}
	require.Len(t, tail(t, h, 10_000), 256) // 4 MiB
}

func TestPartialLinesAreOneLineOfHistory(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	part := func(i int, data string, partial bool) v1.Line {
		return v1.Line{Time: line(i).Time, Data: []byte(data), Partial: partial}
	}
	write(t, h, []v1.Line{part(0, "a", false), part(1, "b", true), part(2, "c", true)})
	require.Equal(t, []v1.Line{part(0, "a", false), part(1, "bc", true)}, tail(t, h, 2))
	write(t, h, []v1.Line{part(3, "d", false), part(4, "e", true)})
	require.Equal(t, []v1.Line{part(1, "bcd", false), part(4, "e", true)}, tail(t, h, 2))
	require.Equal(t, []v1.Line{part(4, "e", true)}, tail(t, h, 1))
	write(t, h, []v1.Line{{Time: line(5).Time, Data: []byte("said"), Message: true}, part(6, "f", false)})
	got := tail(t, h, 10)
	require.Equal(t, "said", string(got[len(got)-2].Data))
	require.True(t, got[len(got)-2].Message)
	require.Equal(t, part(6, "f", false), got[len(got)-1])
}

func TestBothConsolesAreOneHistory(t *testing.T) {
	h := stream.New(t.TempDir(), stream.Options{})
	require.NoError(t, h.Append("mc", v1.InstallConsole, lines(0, 3)))
	require.NoError(t, h.Append("mc", server, lines(3, 6)))
	require.NoError(t, h.Append("mc", v1.InstallConsole, lines(6, 9)))
	got, err := h.Tail("mc", "", 5, time.Time{})
	require.NoError(t, err)
	require.Equal(t, lines(4, 9), got)
	got, err = h.Tail("mc", v1.InstallConsole, 5, time.Time{})
	require.NoError(t, err)
	require.Equal(t, append(lines(1, 3), lines(6, 9)...), got)
}

func TestNamesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	h := stream.New(filepath.Join(dir, "console"), stream.Options{})
	for _, id := range []string{"", ".", "..", "../x", "a/b", "/etc"} {
		require.Error(t, h.Append(id, server, lines(0, 1)), id)
		require.Error(t, h.Remove(id), id)
	}
	require.Error(t, h.Append("mc", "other", lines(0, 1)))
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestLinesThatCannotBeWrittenAreHandedOnAndToldOf(t *testing.T) {
	dir := t.TempDir()
	h := stream.New(dir, stream.Options{})
	l, err := h.Listen("mc")
	require.NoError(t, err)
	defer l.Close()
	path := filepath.Join(dir, "mc")
	require.NoError(t, os.WriteFile(path, nil, 0o600)) // a file in the directory's place
	begin(t, h, "c1")
	require.Error(t, h.Append("mc", server, lines(0, 2)))
	require.Error(t, h.Append("mc", server, lines(2, 4)))
	out, err := l.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "line 0\nline 1\nline 2\nline 3\n", decode(t, out[0]).Data)
	require.NoError(t, os.Remove(path))
	write(t, h, lines(4, 5))
	got := tail(t, h, 10)
	require.Len(t, got, 2)
	require.True(t, got[0].Message)
	require.Contains(t, string(got[0].Data), "is missing")
	require.Equal(t, line(4), got[1])
	out, err = l.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, out, 2)
	require.Equal(t, v1.EventMessage, out[0].Event)
	require.Equal(t, "line 4\n", decode(t, out[1]).Data)
}

func TestRemoveEndsListenersAndFiles(t *testing.T) {
	dir := t.TempDir()
	h := stream.New(dir, stream.Options{})
	begin(t, h, "c1")
	write(t, h, lines(0, 1))
	l, err := h.Listen("mc")
	require.NoError(t, err)
	defer l.Close()
	all, err := h.Listen("")
	require.NoError(t, err)
	defer all.Close()
	write(t, h, lines(1, 2))
	require.NoError(t, h.Remove("mc"))
	require.NoDirExists(t, filepath.Join(dir, "mc"))
	out, err := l.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "line 1\n", decode(t, out[0]).Data)
	_, err = l.Next(t.Context())
	require.ErrorIs(t, err, stream.ErrGone)
	require.Empty(t, tail(t, h, 10))
	_, err = all.Next(t.Context())
	require.NoError(t, err)
	write(t, h, lines(5, 6)) // a new container of that name
	out, err = all.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "line 5\n", decode(t, out[0]).Data)
}
