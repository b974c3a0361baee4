package kv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dirty returns how much of the logs in a directory was written to memory and not to the
// disk, in KiB.
func dirty(t *testing.T, dir string) (total int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	ours := false
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); strings.Contains(fields[0], "-") {
			ours = filepath.Dir(fields[len(fields)-1]) == dir && filepath.Ext(fields[len(fields)-1]) == ".mem"
		}
		var size int
		if _, err := fmt.Sscanf(line, "Private_Dirty: %d kB", &size); err == nil && ours {
			total += size
		}
	}
	return total
}

// TestCommitsAreSynced: a batch is on the disk when Commit with flush or Flush returns. The
// kernel may flush what it has at any time, so not every batch, but one of a hundred, must be
// seen before its flush.
func TestCommitsAreSynced(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir, Options{})
	commit := func(key string, flush bool) {
		b := db.Begin()
		defer b.Discard()
		require.NoError(t, b.Add(map[string][]byte{key: []byte("value")}, false))
		require.NoError(t, b.Commit(flush))
	}
	unflushed := 0
	for i := 0; i < 3 || unflushed == 0 && i < 100; i++ {
		commit(fmt.Sprint(i), false)
		unflushed += dirty(t, dir)
		require.True(t, db.Unflushed())
		if i%2 == 0 {
			require.NoError(t, db.Flush())
		} else {
			commit(fmt.Sprint(i, "+"), true)
		}
		require.False(t, db.Unflushed())
		require.Zero(t, dirty(t, dir))
	}
	require.Positive(t, unflushed, "flushed by a commit without flush")
}

// TestFlushBeforeNewLog: Badger flushes its current log only, so what the one before it holds
// is on the disk when another begins.
func TestFlushBeforeNewLog(t *testing.T) {
	dir := t.TempDir()
	writes := 0
	db := openIn(t, dir, Options{Commit: func(commit func() error) error { writes++; return commit() }})
	log := func() string {
		names, err := filepath.Glob(filepath.Join(dir, "*.mem"))
		require.NoError(t, err)
		return names[len(names)-1]
	}
	for i, first := 0, log(); log() == first; i++ {
		require.Less(t, i, 100)
		b := db.Begin()
		require.NoError(t, b.Add(map[string][]byte{fmt.Sprint(i): make([]byte, 500_000)}, false))
		writes = 0
		require.NoError(t, b.Commit(false))
		b.Discard()
	}
	require.Equal(t, 2, writes, "the commit that began a log, and a flush before it")
}

// TestPowerCutBetweenFlushes: of what was not flushed, a power cut may leave later pages on the
// disk and lose earlier ones. Then all from there on is lost, and nothing before it.
func TestPowerCutBetweenFlushes(t *testing.T) {
	dir, after := t.TempDir(), t.TempDir()
	db := openIn(t, dir, Options{})
	for _, key := range []string{"a", "b", "c"} {
		b := db.Begin()
		require.NoError(t, b.Add(map[string][]byte{key: bytes.Repeat([]byte(key), 32<<10)}, false))
		require.NoError(t, b.Commit(key == "a"))
		b.Discard()
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
	require.Equal(t, []string{"a"}, keys(t, openIn(t, after, Options{}), ""))
}
