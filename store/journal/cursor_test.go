package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestParseCursor(t *testing.T) {
	for _, text := range []string{"", "-", "1", "a-", "-1", "a-1-2", "a--2", "x-1", "a-b", "a-1 ", "A-1", "a-99999999999999999999", strings.Repeat("1", 1<<20) + "-1"} {
		_, ok := ParseCursor(text)
		require.False(t, ok, "%.30s", text)
	}
	for text, want := range map[string]Cursor{"0-0": {}, "a1-345": {"a1", 345}} {
		c, ok := ParseCursor(text)
		require.True(t, ok)
		require.Equal(t, want, c)
		require.Equal(t, text, c.String())
	}
}

// TestCursorIsGoodForEver finds the cursor of each record again, also after a restart, until the
// record is rotated away.
func TestCursorIsGoodForEver(t *testing.T) {
	dir := Directory{Path: t.TempDir(), FileSize: 2000, Files: 2}
	j := open(t, dir)
	require.Equal(t, "0-0", j.Cursor(end(j)).String())
	var cursors []Cursor
	for i := range 300 {
		role := v1.ServerConsole
		if i%100 < 10 {
			role = v1.InstallConsole
		}
		writeAs(t, j, role, lines(i, i+1))
		cursors = append(cursors, j.Cursor(end(j)))
		if i%7 == 0 {
			j = open(t, dir)
		}
		kept := map[int64]bool{}
		for r, err := range j.Backward("", end(j)) {
			require.NoError(t, err)
			kept[r.End] = true
		}
		for k, c := range cursors {
			off, known, err := j.Find(c)
			require.NoError(t, err)
			require.True(t, known)
			next := k + 1
			if next > i {
				continue
			}
			missing := !kept[cursors[next].Offset]
			require.Equal(t, missing, j.Removed("", off), "line %d", next)
			b, err := j.Read("", off, end(j))
			require.NoError(t, err)
			if r, _ := b.Next(); missing {
				require.Greater(t, r.Line.Time, line(next).Time)
			} else {
				require.Equal(t, line(next).Time, r.Line.Time)
			}
		}
	}
	require.False(t, j.Removed(v1.InstallConsole, 0), "none of these was removed")
	require.True(t, j.Removed("", cursors[9].Offset))
}

func TestUnknownCursors(t *testing.T) {
	dir := in(t.TempDir())
	j := open(t, dir)
	write(t, j, lines(0, 10))
	c := j.Cursor(end(j))
	for name, x := range map[string]Cursor{
		"another journal":         {"abc", c.Offset},
		"behind the end":          {c.Journal, c.Offset + 1},
		"in the middle of a line": {c.Journal, c.Offset - 1},
	} {
		_, known, err := j.Find(x)
		require.NoError(t, err)
		require.False(t, known, name)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(dir.Path, "mc")))
	j = open(t, dir)
	write(t, j, lines(0, 10))
	_, known, err := j.Find(c)
	require.NoError(t, err)
	require.False(t, known, "it is of the journal before")
}

// TestRolesTakeTurns installs a container again and again: the order of lines is that in which they
// were written, and both roles keep their files.
func TestRolesTakeTurns(t *testing.T) {
	dir := Directory{Path: t.TempDir(), FileSize: 1000, Files: 2}
	j := open(t, dir)
	n := 0
	print := func(role string, count int) {
		for range count {
			writeAs(t, j, role, lines(n, n+1))
			n++
		}
	}
	print(v1.InstallConsole, 5)
	print(v1.ServerConsole, 10)
	print(v1.InstallConsole, 5)
	print(v1.ServerConsole, 1)
	require.Equal(t, lines(0, 21), tail(t, j, 100))
	require.Equal(t, append(lines(5, 15), line(20)), since(t, j, time.Time{}))
	print(v1.ServerConsole, 200)
	kept := tail(t, j, 1000)
	require.Equal(t, append(lines(0, 5), lines(15, 20)...), kept[:10], "the lines of the installations are kept")
	require.Equal(t, line(n-1), kept[len(kept)-1])
	for range 3 * maxSegments {
		print(v1.InstallConsole, 1)
		print(v1.ServerConsole, 1)
	}
	names, err := os.ReadDir(filepath.Join(dir.Path, "mc"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(names), 2*maxSegments+1)
	require.Equal(t, line(n-1), tail(t, j, 1)[0])
}

// TestLinesThatCannotBeWritten are not in the journal, and its reader begins with them again.
func TestLinesThatCannotBeWritten(t *testing.T) {
	dir := in(t.TempDir())
	j := open(t, dir)
	path := filepath.Join(dir.Path, "mc")
	require.NoError(t, os.WriteFile(path, nil, 0o600)) // a file in the directory's place
	for i := range 2 {
		_, err := j.Append(v1.ServerConsole, lines(2*i, 2*i+2))
		require.Error(t, err)
	}
	r, err := j.Begin(v1.ServerConsole, "c1")
	require.Error(t, err)
	require.Zero(t, r.Last)
	require.NoError(t, os.Remove(path))
	write(t, j, lines(0, 5))
	require.Equal(t, lines(0, 5), since(t, j, time.Time{}))
}

// TestSegmentThatStaysEmpty: a kill, or a full disk, came between its begin and its first record. The
// other role's segment begins at the same offset.
func TestSegmentThatStaysEmpty(t *testing.T) {
	dir := in(t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.Join(dir.Path, "mc"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir.Path, "mc", "server-00000000000000000000.log"), []byte("2026-01-02T15"), 0o600))
	j := open(t, dir)
	writeAs(t, j, v1.InstallConsole, lines(0, 3))
	for range 2 {
		require.Equal(t, lines(0, 3), tail(t, j, 10))
		j = open(t, dir)
	}
	write(t, j, lines(3, 4))
	require.Equal(t, lines(0, 4), tail(t, open(t, dir), 10))
}
