package volume_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

func TestDirectory(t *testing.T) {
	m, err := volume.New(filepath.Join(t.TempDir(), "a", "volumes"), options())
	require.NoError(t, err)
	require.ErrorIs(t, m.Check(id), v1.ErrDirectoryMissing)
	_, err = m.Files().List(t.Context(), id, ".")
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
			require.ErrorIs(t, m.Files().Write(t.Context(), id, "x", strings.NewReader("x")), v1.ErrNotADirectory)
		})
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", ".removing-x", "a\x00"} {
		require.ErrorIs(t, m.Check(bad), v1.ErrVolumeNotFound, bad)
		require.ErrorIs(t, m.Ensure(bad), v1.ErrVolumeNotFound, bad)
		require.ErrorIs(t, m.Remove(t.Context(), bad), v1.ErrVolumeNotFound, bad)
	}
}

// newHardBox returns a volume of 16 MiB with its own file system.
func newHardBox(t *testing.T) (box, string) {
	t.Helper()
	base := filepath.Join(t.TempDir(), "volumes")
	m := openHard(t, base)
	require.NoError(t, m.HardLimit())
	m.SetLimit(id, 16<<20, v1.Usage{})
	require.NoError(t, m.Ensure(id))
	t.Cleanup(func() { require.NoError(t, openHard(t, base).Remove(context.Background(), id)) })
	return box{m, m.Files(), m.Path(id), ""}, base
}

func openHard(t *testing.T, base string) *volume.Manager {
	t.Helper()
	m, err := volume.New(base, volume.Options{UID: -1, GID: -1, HardLimit: true})
	require.NoError(t, err)
	return m
}

func TestHardLimit(t *testing.T) {
	b, _ := newHardBox(t)
	ctx := t.Context()
	require.NoError(t, b.Write(ctx, id, "a/file", content(1<<20)))
	require.ErrorIs(t, b.Write(ctx, id, "more", content(20<<20)), v1.ErrSizeLimit, "the soft limit comes first")
	require.Len(t, b.names(t), 2)

	err := exec.Command("dd", "if=/dev/zero", "of="+filepath.Join(b.dir, "tenant"), "bs=1M", "count=100").Run()
	require.Error(t, err, "a tenant cannot write more")
	info, err := os.Stat(filepath.Join(b.dir, "tenant"))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(60<<20))
	require.ErrorIs(t, b.Write(ctx, id, "more", content(2<<20)), v1.ErrSizeLimit)
	require.Len(t, b.get(t, "a/file"), 1<<20)

	b.SetLimit(id, 300<<20, v1.Usage{})
	require.NoError(t, b.Check(id), "it grows at once or at the next mount")
	require.NoError(t, unix.Unmount(b.dir, 0))
	require.Eventually(t, func() bool { return b.Check(id) == nil }, 20*time.Second, 20*time.Millisecond)
	require.NoError(t, b.Write(ctx, id, "more", content(100<<20)))
	require.NoError(t, b.Delete(ctx, id, "more"))
	_, err = b.Scan(ctx, id)
	require.NoError(t, err)
}

// TestHardLimitAfterRestart unmounts the volume, as a restart of the host does.
func TestHardLimitAfterRestart(t *testing.T) {
	b, base := newHardBox(t)
	ctx := t.Context()
	require.NoError(t, b.Write(ctx, id, "file", strings.NewReader("kept")))
	require.NoError(t, unix.Unmount(b.dir, 0))
	require.ErrorIs(t, b.Write(ctx, id, "file", strings.NewReader("lost")), v1.ErrDirectoryMissing,
		"never into the empty folder below")
	_, err := volume.New(base, options())
	require.NoError(t, err, "it is mounted at the start, also without HardLimit")
	require.Equal(t, "kept", b.get(t, "file"))
	require.NoError(t, unix.Unmount(b.dir, 0))
	require.NoError(t, b.Check(id), "or by Check")
	require.Equal(t, "kept", b.get(t, "file"))
}

func TestRemoveDeletesImage(t *testing.T) {
	b, base := newHardBox(t)
	b.put(t, "a/b/c", "x")
	busy, err := os.Open(filepath.Join(b.dir, "a/b/c"))
	require.NoError(t, err)
	require.NoError(t, b.Remove(t.Context(), id), "although a file is open")
	require.NoError(t, busy.Close())
	require.ErrorIs(t, b.Check(id), v1.ErrDirectoryMissing)
	list, err := filepath.Glob(filepath.Join(base, ".images", "*"))
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestNoImageWithoutLimit(t *testing.T) {
	base := filepath.Join(t.TempDir(), "volumes")
	m := openHard(t, base)
	require.NoError(t, m.Ensure(id))
	list, err := filepath.Glob(filepath.Join(base, ".images", "*"))
	require.NoError(t, err)
	require.Empty(t, list)
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
	list, err := os.ReadDir(filepath.Dir(b.dir))
	require.NoError(t, err)
	require.Empty(t, list)
	require.FileExists(t, filepath.Join(b.outside, "secret"))
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

// TestRemoveBesideOlderRemoval: an earlier removal has left a tree with the name that a removal
// gives to the volume.
func TestRemoveBesideOlderRemoval(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", "content")
	require.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(b.dir), ".removing-"+id, "folder/deep"), 0o700))
	require.NoError(t, b.Remove(t.Context(), id))
	left, err := os.ReadDir(filepath.Dir(b.dir))
	require.NoError(t, err)
	require.Empty(t, left)
}
