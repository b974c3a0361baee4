package volume_test

import (
	"context"
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
	require.NoError(t, b.Check(id), "it grows, while it is mounted or with the next mount")
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
	require.NoError(t, err, "it is mounted at the start, whatever the configuration says now")
	require.Equal(t, "kept", b.get(t, "file"))
	require.NoError(t, unix.Unmount(b.dir, 0))
	require.NoError(t, b.Check(id), "or by a look at it")
	require.Equal(t, "kept", b.get(t, "file"))
}

func TestRemoveDeletesImage(t *testing.T) {
	b, base := newHardBox(t)
	b.put(t, "a/b/c", "x")
	busy, err := os.Open(filepath.Join(b.dir, "a/b/c"))
	require.NoError(t, err)
	require.NoError(t, b.Remove(t.Context(), id), "although somebody reads from it")
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
