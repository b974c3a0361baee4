package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestStoreWithoutCheckpointStartsNoDuplicate follows the advice in the error about a
// store that is behind its checkpoint.
func TestStoreWithoutCheckpointStartsNoDuplicate(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", berthtest.Spec{"startup_command": "sleep 1000"})
	before := b.Containers(t, "mc")
	require.Len(t, before, 1)
	store, epoch := b.Store(), epochOf(t, b)
	b.Kill9(t)
	require.NoError(t, os.Remove(filepath.Join(b.Data, "store", "MARK")))
	b.Run(t)
	b.Ready(t)
	require.Equal(t, store, b.Store())
	require.NotEqual(t, epoch, epochOf(t, b))
	b.State(t, "mc", "running")
	require.Equal(t, before, b.Containers(t, "mc"))
}

func epochOf(t *testing.T, b *berthtest.Berth) string {
	t.Helper()
	var list struct{ Epoch string }
	b.Get(t, "/events", &list)
	require.NotEmpty(t, list.Epoch)
	return list.Epoch
}

// TestStoreFilesArePrivate: also those that Badger creates later. Files in
// volumes have the modes of the interface.
func TestStoreFilesArePrivate(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	volume := b.Volume(t)
	b.Post(t, "/volumes/"+volume+"/files", map[string]any{"path": "a/b.txt", "content": "hello"})
	table := filepath.Join(b.Data, "store", "000001.sst")
	b.Restart(t) // writes a table
	berthtest.Until(t, wait, "the table is written", func() bool {
		_, err := os.Stat(table)
		return err == nil
	})
	files := 0
	require.NoError(t, filepath.WalkDir(b.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/volumes/") {
			return err
		}
		st, err := d.Info()
		if err == nil {
			files++
			require.Zero(t, st.Mode().Perm()&0o077, "%s is %v", path, st.Mode())
		}
		return nil // the store tidies up
	}))
	require.Greater(t, files, 5)
	for path, mode := range map[string]fs.FileMode{"a/b.txt": 0o644, "a": 0o755} {
		st, err := os.Stat(filepath.Join(b.Data, "volumes", volume, path))
		require.NoError(t, err)
		require.Equal(t, mode, st.Mode().Perm(), path)
	}
}
