package walk_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/runtime/volume/walk"
)

// open opens the folder dir, which the test closes at its end.
func open(t *testing.T, dir string) *walk.Dir {
	t.Helper()
	r, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer r.Close()
	d, err := walk.OpenDir(r, ".")
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// TestDirTakesSingleNames passes names that are no single component to each method.
func TestDirTakesSingleNames(t *testing.T) {
	top := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(top, "in/sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(top, "secret"), nil, 0o600))
	d := open(t, filepath.Join(top, "in"))
	calls := map[string]func(name string) error{
		"Open":        func(name string) error { _, err := d.Open(name); return err },
		"OpenRegular": func(name string) error { _, err := d.OpenRegular(name); return err },
		"Create":      func(name string) error { _, err := d.Create(name); return err },
		"Lstat":       func(name string) error { _, err := d.Lstat(name); return err },
		"Readlink":    func(name string) error { _, err := d.Readlink(name); return err },
		"Mkdir":       d.Mkdir,
		"Unlink":      d.Unlink,
		"Symlink":     func(name string) error { return d.Symlink("x", name) },
		"Chown":       func(name string) error { return d.Chown(name, -1, -1) },
		"Chtimes":     func(name string) error { return d.Chtimes(name, time.Now()) },
		"Link":        func(name string) error { return walk.Link(d, "file", d, name) },
		"Rename from": func(name string) error { return d.Rename(name, d, "new", 0) },
		"Rename to":   func(name string) error { return d.Rename("sub", d, name, 0) },
		"RenameNew":   func(name string) error { return d.RenameNew("sub", d, name) },
		"Remove": func(name string) error {
			_, err := walk.Remove(t.Context(), d, name, func(os.FileInfo) int64 { return 1 })
			return err
		},
	}
	for method, call := range calls {
		for _, name := range []string{"", ".", "..", "../secret", "sub/x", "/etc", "sub/"} {
			require.ErrorIs(t, call(name), unix.EINVAL, "%s %q", method, name)
		}
	}
	require.FileExists(t, filepath.Join(top, "secret"))
}

func TestDirFollowsNoLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "folder")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "file"), filepath.Join(dir, "file")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	d := open(t, dir)
	_, err := d.Open("folder")
	require.Error(t, err)
	for _, name := range []string{"folder", "file", "fifo"} {
		_, err = d.OpenRegular(name)
		require.ErrorIs(t, err, walk.ErrNotRegular, name)
	}
	require.ErrorIs(t, d.RenameNew("fifo", d, "file"), unix.EEXIST)
	old := time.Unix(1000, 0)
	require.NoError(t, d.Chtimes("file", old))
	info, err := os.Stat(filepath.Join(outside, "file"))
	require.NoError(t, err)
	require.NotEqual(t, old, info.ModTime())
}
