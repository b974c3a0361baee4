package kv

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dirty returns how much of the files in a directory whose names end so was written to memory and
// not to the disk, in KiB.
func dirty(t *testing.T, dir, end string) (total int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	ours := false
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); strings.Contains(fields[0], "-") {
			ours = filepath.Dir(fields[len(fields)-1]) == dir && strings.HasSuffix(fields[len(fields)-1], end)
		}
		var size int
		if _, err := fmt.Sscanf(line, "Private_Dirty: %d kB", &size); err == nil && ours {
			total += size
		}
	}
	return total
}

// TestCommitsAreSynced: a batch is on the disk when Commit returns.
func TestCommitsAreSynced(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir, Options{})
	for i := range 3 {
		require.NoError(t, put(db, fmt.Sprint(i), "value"))
		require.Zero(t, dirty(t, dir, ".mem"))
	}
}

// TestPowerCutInCommit: of what was not flushed, a power cut may leave later pages on the
// disk and lose earlier ones. Then all from there on is lost, and nothing before it.
func TestPowerCutInCommit(t *testing.T) {
	dir, after := t.TempDir(), t.TempDir()
	db := openIn(t, dir, Options{})
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, update(db, map[string][]byte{key: bytes.Repeat([]byte(key), 32<<10)}, false))
	}
	require.NoError(t, os.CopyFS(after, os.DirFS(dir)))
	logs, err := filepath.Glob(filepath.Join(after, "*.mem"))
	require.NoError(t, err)
	log := logs[len(logs)-1]
	content, err := os.ReadFile(log)
	require.NoError(t, err)
	const page = 4096
	lost := bytes.Index(content, bytes.Repeat([]byte("b"), 3*page))/page*page + page
	require.Positive(t, bytes.Index(content, bytes.Repeat([]byte("c"), page)), "the last one is in the log")
	copy(content[lost:], make([]byte, page))
	require.NoError(t, os.WriteFile(log, content, 0o600))
	require.Equal(t, []string{"a", "meta/revision"}, keys(t, openIn(t, after, Options{}), ""))
}

// withTables returns the directory of a closed database with some tables.
func withTables(t testing.TB) (dir string, tables []string) {
	t.Helper()
	dir = t.TempDir()
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	for i := range 200 {
		random := make([]byte, 2000)
		_, _ = rand.Read(random)
		require.NoError(t, put(db, fmt.Sprintf("a/%05d", i), hex.EncodeToString(random)))
	}
	require.NoError(t, db.Close())
	tables, err = filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	return dir, tables
}

// TestVerify flips one bit in each part of a table, and cuts it.
func TestVerify(t *testing.T) {
	dir, tables := withTables(t)
	o := badgerOptions(dir, nil)
	require.NoError(t, verify(o))
	name := tables[0]
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	refused := 0
	for at := 0; at < len(whole); at += 1 + len(whole)/100 {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 1 << (at % 8)
		require.NoError(t, os.WriteFile(name, damaged, 0o600))
		// Rarely a block decompresses to the same content all the same.
		if err := verify(o); err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			refused++
		}
	}
	require.Greater(t, refused, 80)
	for _, size := range []int{0, 1, 3, 4, 5, 100, len(whole) / 2, len(whole) - 1} {
		require.NoError(t, os.WriteFile(name, whole[:size], 0o600))
		require.ErrorIs(t, verify(o), ErrDamaged, "%d of %d bytes", size, len(whole))
	}
	require.NoError(t, os.Remove(name))
	require.ErrorIs(t, verify(o), ErrDamaged)
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	_, err := Lock(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = Lock(dir)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, db.Close())
	unlock, err := Lock(dir)
	require.NoError(t, err)
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
	unlock()
	db, err = Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, db.Close())
}
