package volume_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

func TestDirectory(t *testing.T) {
	m, err := volume.New(filepath.Join(t.TempDir(), "a", "volumes"), options())
	require.NoError(t, err)
	require.ErrorIs(t, m.Check(id), v1.ErrDirectoryMissing)
	_, err = m.List(t.Context(), id, ".")
	require.ErrorIs(t, err, v1.ErrDirectoryMissing)
	require.NoError(t, m.Ensure(id))
	require.NoError(t, m.Ensure(id), "again")
	require.NoError(t, m.Check(id))
	info, err := os.Stat(m.Path(id))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())

	for name, put := range map[string]func(p string) error{
		"link":   func(p string) error { return os.Symlink(t.TempDir(), p) },
		"file":   func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"inside": func(p string) error { return os.Symlink(".", p) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(m.Path(id)))
			require.NoError(t, put(m.Path(id)))
			require.ErrorIs(t, m.Check(id), v1.ErrNotADirectory)
			require.ErrorIs(t, m.Ensure(id), v1.ErrNotADirectory)
			_, err := m.Write(t.Context(), id, "x", strings.NewReader("x"), nil)
			require.ErrorIs(t, err, v1.ErrNotADirectory)
		})
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", ".tmp", "a\x00"} {
		require.ErrorIs(t, m.Check(bad), v1.ErrVolumeNotFound, bad)
		require.ErrorIs(t, m.Ensure(bad), v1.ErrVolumeNotFound, bad)
		require.ErrorIs(t, m.Remove(t.Context(), bad), v1.ErrVolumeNotFound, bad)
	}
}

func TestRemove(t *testing.T) {
	b := newBox(t, options())
	for i := range 3000 {
		b.put(t, fmt.Sprintf("d%d/f%d", i%10, i), "")
	}
	deep(t, b.dir, long, 300, 1)
	require.NoError(t, os.Symlink(b.outside, filepath.Join(b.dir, "link")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Remove(ctx, id), context.Canceled)
	require.ErrorIs(t, b.Check(id), v1.ErrDirectoryMissing, "its name is free at once")
	require.NoError(t, b.Remove(t.Context(), id), "it goes on")
	require.NoError(t, b.Remove(t.Context(), id), "again")
	noVolume(t, b)
	require.FileExists(t, filepath.Join(b.outside, "secret"))
}

// noVolume checks that nothing of the volume is left.
func noVolume(t *testing.T, b box) {
	t.Helper()
	require.NoDirExists(t, b.dir)
	require.NoDirExists(t, b.temps())
	list, err := os.ReadDir(filepath.Dir(b.dir))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, ".tmp", list[0].Name())
}

// TestOwner needs root, as the other tests that mount do.
func TestOwner(t *testing.T) {
	b := newBox(t, volume.Options{UID: 4321, GID: 1234})
	ctx := t.Context()
	require.NoError(t, b.Write(ctx, id, "made/file", content(1)))
	require.NoError(t, b.Mkdir(ctx, id, "folder"))
	require.NoError(t, os.Symlink("made", filepath.Join(b.dir, "made/link")))
	require.NoError(t, b.Copy(ctx, id, "made", "copy"))
	for _, format := range v1.Formats() {
		a, err := b.Compress(ctx, id, v1.Compression{Output: "a", Format: format})
		require.NoError(t, err)
		require.NoError(t, b.Decompress(ctx, id, a.Path, "out "+format))
	}
	require.NoError(t, filepath.WalkDir(b.dir, func(p string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(p, &st))
		if p != filepath.Join(b.dir, "made/link") { // that the test made
			require.Equal(t, [2]uint32{4321, 1234}, [2]uint32{st.Uid, st.Gid}, p)
		}
		return nil
	}))
}

// TestRemoveBesideOlderRemoval: an earlier removal has left a tree.
func TestRemoveBesideOlderRemoval(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", "content")
	require.NoError(t, os.MkdirAll(filepath.Join(b.temps(), "removed-0123456789abcdef/folder/deep"), 0o700))
	require.NoError(t, b.Remove(t.Context(), id))
	noVolume(t, b)
}
