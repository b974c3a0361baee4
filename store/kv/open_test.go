package kv

import (
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

// TestCommitsAreSynced: a batch is with the kernel when written is called, and on the disk
// when Commit returns. The kernel may flush what it has at any time, so not every batch, but
// one of a hundred, must be seen before its flush.
func TestCommitsAreSynced(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir, Options{})
	unflushed := 0
	for i := 0; i < 3 || unflushed == 0 && i < 100; i++ {
		b := db.Begin()
		require.NoError(t, b.Add(map[string][]byte{fmt.Sprint(i): []byte("value")}, false))
		called := 0
		require.NoError(t, b.Commit(func() { called++; unflushed += dirty(t, dir) }))
		require.Equal(t, 1, called)
		b.Discard()
		require.Zero(t, dirty(t, dir))
	}
	require.Positive(t, unflushed, "flushed before written was called")
}
