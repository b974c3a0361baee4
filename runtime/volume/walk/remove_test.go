package walk_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime/volume/walk"
)

func one(fs.FileInfo) int64 { return 1 }

func TestRemove(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "x/a/b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x/a/file"), nil, 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "x/link")))
	d := open(t, dir)
	freed, err := walk.Remove(t.Context(), d, "x", one)
	require.NoError(t, err)
	require.EqualValues(t, 5, freed)
	require.NoFileExists(t, filepath.Join(dir, "x"))
	require.FileExists(t, filepath.Join(outside, "secret"))
	freed, err = walk.Remove(t.Context(), d, "x", one)
	require.NoError(t, err)
	require.Zero(t, freed)
}

// TestRemoveContinues calls Remove again after its context ended in the middle.
func TestRemoveContinues(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "x"), 0o755))
	for i := range 50 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x", fmt.Sprint(i)), nil, 0o600))
	}
	d := open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	some, err := walk.Remove(ctx, d, "x", func(info fs.FileInfo) int64 {
		if !info.IsDir() && info.Name() == "25" {
			cancel()
		}
		return 1
	})
	require.ErrorIs(t, err, context.Canceled)
	rest, err := walk.Remove(t.Context(), d, "x", one)
	require.NoError(t, err)
	require.EqualValues(t, 51, some+rest)
	require.NoFileExists(t, filepath.Join(dir, "x"))
}
