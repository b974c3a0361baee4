package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// line returns the i-th line of a console, a millisecond after the one before.
func line(i int) v1.Line {
	return v1.Line{Time: epoch.Add(time.Duration(i) * time.Millisecond), Data: fmt.Appendf(nil, "line %d", i)}
}

func lines(from, to int) []v1.Line {
	var list []v1.Line
	for i := from; i < to; i++ {
		list = append(list, line(i))
	}
	return list
}

// in returns a directory of journals with the limits that berth uses.
func in(path string) Directory { return Directory{Path: path, FileSize: 20 << 20, Files: 2} }

// open opens the journal of a server.
func open(t *testing.T, d Directory) *Journal {
	t.Helper()
	j, err := d.Open("mc")
	require.NoError(t, err)
	return j
}

func write(t *testing.T, j *Journal, list []v1.Line) {
	t.Helper()
	writeAs(t, j, v1.ServerConsole, list)
}

func writeAs(t *testing.T, j *Journal, role string, list []v1.Line) {
	t.Helper()
	before := end(j)
	from, err := j.Append(role, list)
	require.NoError(t, err)
	require.Equal(t, before, from.Offset)
}

func end(j *Journal) int64 { return j.End().Offset }

func begin(t *testing.T, j *Journal, container string) v1.Resume {
	t.Helper()
	r, err := j.Begin(v1.ServerConsole, container)
	require.NoError(t, err)
	return r
}

// tail returns the last n records, oldest first.
func tail(t *testing.T, j *Journal, n int) []v1.Line {
	t.Helper()
	var list []v1.Line
	for r, err := range j.Backward("", end(j)) {
		require.NoError(t, err)
		if len(list) == n {
			break
		}
		r.Line.Data = bytes.Clone(r.Line.Data)
		list = append([]v1.Line{r.Line}, list...)
	}
	return list
}

func since(t *testing.T, j *Journal, from time.Time) []v1.Line {
	t.Helper()
	var list []v1.Line
	require.NoError(t, j.Since(t.Context(), v1.ServerConsole, from, func(l v1.Line) bool {
		l.Data = bytes.Clone(l.Data)
		list = append(list, l)
		return true
	}))
	return list
}

func TestJournalIsReadByTheNextProcess(t *testing.T) {
	d := in(t.TempDir())
	j := open(t, d)
	require.Equal(t, v1.Resume{Fresh: true}, begin(t, j, "c1"))
	write(t, j, lines(0, 100))

	killed := open(t, d)
	require.Equal(t, v1.Resume{Last: line(99).Time, Container: "c1"}, begin(t, killed, "c1"))
	require.Equal(t, lines(95, 100), tail(t, killed, 5))
	write(t, killed, lines(100, 110))
	require.NoError(t, killed.Finish(v1.ServerConsole))

	ended := open(t, d)
	require.Equal(t, v1.Resume{Last: line(109).Time, Container: "c1", Complete: true, Fresh: true}, begin(t, ended, "c2"))
	require.Equal(t, lines(0, 110), tail(t, ended, 1000))

	fresh := open(t, d)
	require.Equal(t, v1.Resume{Container: "c2", Fresh: true}, begin(t, fresh, "c2"))
	late := v1.Line{Time: line(200).Time, Data: []byte("later")}
	write(t, fresh, []v1.Line{late, line(150), {Time: line(300).Time, Data: []byte("message"), Message: true}})
	require.Equal(t, v1.Resume{Last: late.Time, Container: "c2"}, begin(t, open(t, d), "c2"))
}

func TestJournalIsPrivate(t *testing.T) {
	dir := t.TempDir()
	j := open(t, in(dir))
	begin(t, j, "c1")
	write(t, j, lines(0, 1))
	info, err := os.Stat(filepath.Join(dir, "mc"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	for _, name := range []string{"server-00000000000000000000.log", "server.run", "id"} {
		info, err := os.Stat(filepath.Join(dir, "mc", name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
}

func TestTornJournalIsTruncatedToWholeRecords(t *testing.T) {
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
			path := filepath.Join(dir, "mc", "server-00000000000000000000.log")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(whole(0)+whole(1)+whole(2)+torn), 0o600))
			j := open(t, in(dir))
			require.Equal(t, lines(0, 3), tail(t, j, 10))
			require.Equal(t, line(2).Time, begin(t, j, "c1").Last)
			write(t, j, lines(3, 5))
			require.Equal(t, lines(0, 5), tail(t, j, 10))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, whole(0)+whole(1)+whole(2)+whole(3)+whole(4), string(got))
		})
	}
}

func TestDamagedRecordsAreSkipped(t *testing.T) {
	dir := t.TempDir()
	j := open(t, in(dir))
	write(t, j, lines(0, 5))
	path := filepath.Join(dir, "mc", "server-00000000000000000000.log")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	rows := bytes.SplitAfter(text, []byte("\n"))
	copy(rows[2], "damaged")
	require.NoError(t, os.WriteFile(path, bytes.Join(rows, nil), 0o600))
	want := append(lines(0, 2), lines(3, 5)...)
	again := open(t, in(dir))
	require.Equal(t, want, tail(t, again, 10))
	require.Equal(t, want, since(t, again, time.Time{}))
}

func TestJournalIsRotated(t *testing.T) {
	dir := t.TempDir()
	d := Directory{Path: dir, FileSize: 4096, Files: 3}
	j := open(t, d)
	begin(t, j, "c1")
	const n = 2000
	for i := 0; i < n; i += 10 {
		write(t, j, lines(i, i+10))
	}
	names, err := filepath.Glob(filepath.Join(dir, "mc", "server-*.log"))
	require.NoError(t, err)
	require.Len(t, names, 3)
	for _, name := range names {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(4096))
	}
	kept := tail(t, j, n)
	require.Greater(t, len(kept), 150)
	require.Equal(t, lines(n-len(kept), n), kept)
	require.Equal(t, kept, since(t, j, time.Time{}))
	require.Equal(t, kept[7:], since(t, j, kept[7].Time))
	require.Empty(t, since(t, j, line(n).Time))

	again := open(t, d)
	require.Equal(t, kept, tail(t, again, n))
	write(t, again, lines(n, n+500))
	require.Equal(t, line(n+499), tail(t, again, 1)[0])

	fewer := open(t, Directory{Path: dir, FileSize: 4096, Files: 1})
	write(t, fewer, lines(n+500, n+501))
	names, err = filepath.Glob(filepath.Join(dir, "mc", "server-*.log"))
	require.NoError(t, err)
	require.Len(t, names, 1)
}

func TestSinceInALargeJournal(t *testing.T) {
	j := open(t, in(t.TempDir()))
	const n = 50_000
	write(t, j, lines(0, n))
	for _, from := range []int{0, 1, 12_345, n - 1} {
		require.Equal(t, lines(from, n), since(t, j, line(from).Time))
	}
	count := 0
	require.NoError(t, j.Since(t.Context(), v1.ServerConsole, time.Time{}, func(v1.Line) bool { count++; return count < 3 }))
	require.Equal(t, 3, count)
}

func TestInvalidNamesAreRefused(t *testing.T) {
	dir := t.TempDir()
	d := in(filepath.Join(dir, "console"))
	for _, id := range []string{"", ".", "..", "../x", "a/b", "/etc"} {
		_, err := d.Open(id)
		require.Error(t, err, id)
		require.Error(t, d.Remove(id), id)
	}
	open(t, d)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}
