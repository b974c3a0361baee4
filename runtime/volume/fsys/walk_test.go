package fsys_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/runtime/volume/fsys"
)

// TestNames: one memory bounds hard links, and the names of folders that are read in order.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a", "sub/d", "sub/c"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "sub/a")))
	walk := func(names *fsys.Names) (seen []string, links map[string]string, err error) {
		links = map[string]string{}
		top, err := fsys.NewFolder(os.OpenRoot(dir))
		require.NoError(t, err)
		defer top.Close()
		w := fsys.Walker{Check: func() error { return nil }, Depth: 2, Order: names, Visit: func(e fsys.Entry) error {
			seen = append(seen, e.Path())
			if to := names.First(e.Info); to != "" {
				links[e.Path()] = to
			} else if e.Info.Mode().IsRegular() {
				names.Add(e.Info, e.Path())
			}
			return nil
		}, Failed: func(_ string, err error) error { return err }}
		return seen, links, w.Walk(top, ".", 0)
	}
	const ample = 1 << 10
	names := &fsys.Names{Free: ample}
	seen, links, err := walk(names)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "sub", "sub/a", "sub/c", "sub/d"}, seen)
	require.Equal(t, map[string]string{"sub/a": "a"}, links)
	require.Equal(t, int64(ample-96-1), names.Free, "a folder returns its memory, a link does not")

	need := int64(ample) - names.Free + 3*32 + int64(len("a"+"b"+"sub")) + 3*(32+1)
	_, _, err = walk(&fsys.Names{Free: need})
	require.NoError(t, err)
	_, _, err = walk(&fsys.Names{Free: need - 1})
	require.ErrorIs(t, err, fsys.ErrTooManyNames)

	info, err := os.Lstat(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.NotEmpty(t, names.First(info))
	require.NoError(t, os.Remove(filepath.Join(dir, "sub/a")))
	info, err = os.Lstat(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.Empty(t, names.First(info), "the inode may be that of another file by now")
}

// TestWalkReportsWhatVanishes: Failed gets an entry that is removed after the names of its folder were read, and a
// folder that is too deep.
func TestWalkReportsWhatVanishes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a/deep"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), nil, 0o600))
	top, err := fsys.NewFolder(os.OpenRoot(dir))
	require.NoError(t, err)
	defer top.Close()
	failed := map[string]error{}
	w := fsys.Walker{Check: func() error { return nil }, Depth: 2, Order: &fsys.Names{Free: 1 << 10},
		Visit: func(fsys.Entry) error {
			if err := os.Remove(filepath.Join(dir, "b")); err != nil {
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
			return nil
		},
		Failed: func(path string, err error) error { failed[path] = err; return nil }}
	require.NoError(t, w.Walk(top, ".", 0))
	require.Len(t, failed, 2)
	require.ErrorIs(t, failed["b"], fs.ErrNotExist)
	require.ErrorIs(t, failed["a/deep"], fsys.ErrTooDeep)
}
