package kv

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// killed returns a copy of a directory as a kill of its process leaves it.
func killed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// newLog returns an empty log in memory.
func newLog(t *testing.T) *wal {
	t.Helper()
	fd, err := unix.MemfdCreate(walName, unix.MFD_CLOEXEC)
	require.NoError(t, err)
	w := &wal{f: os.NewFile(uintptr(fd), walName)}
	require.NoError(t, w.prepare())
	return w
}

func logged(t *testing.T, b *Batch, writes map[string][]byte) {
	t.Helper()
	require.NoError(t, b.Add(writes, false))
	require.True(t, b.Log())
}

func TestLogSurvivesKill(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir, Options{})
	require.NoError(t, put(db, "k/old", "x"))
	b := db.Begin()
	defer b.Discard()
	require.True(t, b.Log(), "nothing was added")
	logged(t, b, map[string][]byte{"k/a": []byte("1"), "k/old": nil})
	logged(t, b, map[string][]byte{"k/a": []byte("2"), "k/b": {}})
	require.NoError(t, b.Add(map[string][]byte{"k/lost": nil}, false))
	require.Equal(t, []string{"k/old"}, keys(t, db, "k/"), "views do not see it")
	require.True(t, db.Logged())

	after := openIn(t, killed(t, dir), Options{})
	require.Equal(t, []string{"k/a", "k/b"}, keys(t, after, "k/"))
	require.NoError(t, after.View(func(tx *Txn) error {
		item, err := tx.Get("k/a")
		require.NoError(t, err)
		return item.Value(func(v []byte) error { require.Equal(t, "2", string(v)); return nil })
	}))
	require.NoError(t, put(after, "k/c", "x"))
	require.NoError(t, remove(after, "k/a"))
	again := openIn(t, killed(t, after.disk.dir), Options{})
	require.Equal(t, []string{"k/b", "k/c"}, keys(t, again, "k/"), "nothing is replayed twice")
}

// TestOldLogIsIgnored: what Badger has committed is not replayed, also if the log was not reset.
func TestOldLogIsIgnored(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir, Options{})
	b := db.Begin()
	logged(t, b, map[string][]byte{"k/a": []byte("1")})
	old, err := os.ReadFile(filepath.Join(dir, walName))
	require.NoError(t, err)
	require.NoError(t, b.Commit())
	b.Discard()
	require.NoError(t, remove(db, "k/a"))
	to := killed(t, dir)
	now, err := os.ReadFile(filepath.Join(to, walName))
	require.NoError(t, err)
	require.Zero(t, bytes.Trim(now[:walHead], "\x00"), "the commit has reset it")
	require.NoError(t, os.WriteFile(filepath.Join(to, walName), old, 0o600))
	require.Empty(t, keys(t, openIn(t, to, Options{}), "k/"))
}

// TestDamagedLog: what stands before the damage is replayed.
func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir, Options{})
	b := db.Begin()
	defer b.Discard()
	var ends []int64
	for i := range 3 {
		logged(t, b, map[string][]byte{fmt.Sprint("k/", i): []byte("value")})
		ends = append(ends, int64(db.wal.end))
	}
	whole, err := os.ReadFile(filepath.Join(dir, walName))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		damage func(b []byte) []byte
		want   int
	}{
		"whole":    {slices.Clone[[]byte], 3},
		"empty":    {func([]byte) []byte { return nil }, 0},
		"cut":      {func(b []byte) []byte { return b[:ends[1]+5] }, 2},
		"torn":     {func(b []byte) []byte { clear(b[ends[1]-2 : ends[2]]); return b }, 1},
		"too long": {func(b []byte) []byte { b[ends[0]] = 0xff; return b }, 1},
		"noise":    {func(b []byte) []byte { return bytes.Repeat([]byte{0xa5}, len(b)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			to := killed(t, dir)
			require.NoError(t, os.WriteFile(filepath.Join(to, walName), c.damage(slices.Clone(whole)), 0o600))
			require.Len(t, keys(t, openIn(t, to, Options{}), "k/"), c.want)
		})
	}
}

func TestLogIsBounded(t *testing.T) {
	db := openIn(t, t.TempDir(), Options{})
	b := db.Begin()
	defer func() { b.Discard() }()
	value := make([]byte, 10_000)
	n := 0
	for ; ; n++ {
		require.NoError(t, b.Add(map[string][]byte{fmt.Sprintf("k/%03d", n): value}, false))
		if !b.Log() {
			break
		}
	}
	require.Equal(t, walSize/len(value), n)
	require.NoError(t, b.Commit())
	require.Len(t, keys(t, db, "k/"), n+1)
	b.Discard()
	b = db.Begin()
	logged(t, b, map[string][]byte{"k/new": value})
}

// TestLogAfterFailedCommit: what was logged is not lost with the commit that should have stored it.
func TestLogAfterFailedCommit(t *testing.T) {
	n := 0
	db := openIn(t, t.TempDir(), Options{Commit: failing(&n)})
	b := db.Begin()
	logged(t, b, map[string][]byte{"k/a": []byte("1")})
	n = 3
	require.ErrorIs(t, b.Commit(), unix.EIO)
	b.Discard()
	require.Error(t, db.Repair(func(*Txn) error { return nil }), "the third failure")
	require.NoError(t, db.Repair(func(*Txn) error { return nil }))
	require.Equal(t, []string{"k/a"}, keys(t, db, "k/"))
}

// TestLogAfterCommitWithoutSpace: a commit that fails before Badger has seen it loses nothing either.
func TestLogAfterCommitWithoutSpace(t *testing.T) {
	db := openIn(t, t.TempDir(), Options{})
	b := db.Begin()
	logged(t, b, map[string][]byte{"k/a": []byte("1")})
	dir := db.disk.dir
	db.disk.dir = filepath.Join(dir, "none")
	require.ErrorIs(t, b.Commit(), ErrFailed)
	b.Discard()
	require.ErrorIs(t, db.Fault(), ErrFailed, "nothing is written over the log")
	db.disk.dir = dir
	require.NoError(t, db.Repair(func(*Txn) error { return nil }))
	require.Equal(t, []string{"k/a"}, keys(t, db, "k/"))
}

// TestLogWithoutBlocks: a log whose file has lost its blocks takes no record, and the batch is
// committed.
func TestLogWithoutBlocks(t *testing.T) {
	db := openIn(t, t.TempDir(), Options{})
	b := db.Begin()
	defer b.Discard()
	logged(t, b, map[string][]byte{"k/a": []byte("1")})
	require.NoError(t, db.wal.f.Truncate(0))
	require.NoError(t, b.Add(map[string][]byte{"k/b": []byte("2")}, false))
	require.False(t, b.Log())
	require.NoError(t, b.Commit())
	require.Equal(t, []string{"k/a", "k/b"}, keys(t, db, "k/"))
	w := newLog(t)
	require.True(t, w.write([]byte{1}, 0))
	require.NoError(t, w.close())
	require.False(t, w.write([]byte{1}, 0))
	require.Error(t, w.sync())
}

func TestWithoutLog(t *testing.T) {
	db := openIn(t, "", Options{})
	b := db.Begin()
	defer b.Discard()
	require.NoError(t, b.Add(map[string][]byte{"k/a": nil}, false))
	require.False(t, b.Log(), "in memory")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, walName), 0o700))
	db, err := start(dir, Options{})
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorIs(t, err, unix.EISDIR)
	require.NoError(t, db.Close())
}

// FuzzLog requires that whatever a file holds is read without a panic, and that records come
// back as they were written.
func FuzzLog(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), uint64(1), []byte(nil))
	f.Add([]byte{}, []byte{}, uint64(0), bytes.Repeat([]byte{1}, 100))
	f.Fuzz(func(t *testing.T, key, value []byte, version uint64, noise []byte) {
		w := newLog(t)
		defer w.close()
		want := map[string][]byte{string(key): value, "other": nil}
		require.Equal(t, len(key)+len(value) < walSize-100, w.append(version, []map[string][]byte{want}), "it fits")
		if w.end == 0 {
			return
		}
		_, err := w.f.WriteAt(noise, int64(w.end))
		require.NoError(t, err)
		got, err := w.read(version)
		require.NoError(t, err)
		require.True(t, maps.EqualFunc(want, got, bytes.Equal))
		_, err = w.f.WriteAt(noise, 0)
		require.NoError(t, err)
		_, err = w.read(version)
		require.NoError(t, err)
	})
}
