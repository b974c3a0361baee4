package walk_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"berth/runtime/volume/walk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWalk(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a/b/c/d"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "hidden/x"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a/b/file"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "a/link")))
	var seen, deep []string
	w := walk.Walker{
		CtxErr:    t.Context().Err,
		MaxDepth:  3,
		Skip:      func(top bool, name string) bool { return top && name == "hidden" },
		Visit:     func(e walk.Entry) error { seen = append(seen, e.Path()); return nil },
		OnTooDeep: func(e walk.Entry) error { deep = append(deep, e.Path()); return nil },
	}
	require.NoError(t, w.Walk(open(t, dir), "", 0))
	slices.Sort(seen)
	require.Equal(t, []string{"a", "a/b", "a/b/c", "a/b/file", "a/link"}, seen)
	require.Equal(t, []string{"a/b/c"}, deep)
}

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("12"), 0o640))
	e, err := walk.Lookup(open(t, dir), "up/", "file")
	require.NoError(t, err)
	require.Equal(t, "up/file", e.Path())
	require.EqualValues(t, 2, e.Info.Size())
	_, err = walk.Lookup(open(t, dir), "", "none")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, walk.IgnoreMissing(err))
}
