package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// fillHard creates a tree in a volume with a hard limit.
func fillHard(t *testing.T, b box) {
	t.Helper()
	b.put(t, "world/level.dat", strings.Repeat("level", 10_000))
	b.put(t, "world/region/r.0.0", strings.Repeat("region", 100_000))
	b.put(t, "config", "a=b")
	require.NoError(t, os.Link(filepath.Join(b.dir, "config"), filepath.Join(b.dir, "config too")))
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(b.dir, "link")))
	require.NoError(t, unix.Mkfifo(filepath.Join(b.dir, "fifo"), 0o640))
	require.NoError(t, os.Chown(filepath.Join(b.dir, "config"), 1000, 1001))
}

// TestRestoreHardLimit: a volume with its own file system is restored, in both modes,
// and keeps its limit.
func TestRestoreHardLimit(t *testing.T) {
	b, base := newHardBox(t)
	fillHard(t, b)
	whole := fingerprint(t, b.dir)
	a, got := takeBackup(t, b)
	require.Len(t, got.Skipped, 1)
	b.put(t, "added", "kept")
	require.NoError(t, os.Remove(filepath.Join(b.dir, "config")))
	b.put(t, "config/file", "a folder where a file was")
	require.NoError(t, a.restore(t.Context(), b, v1.RestoreMerge))
	require.Equal(t, "kept", b.get(t, "added"))
	require.NoError(t, os.Remove(filepath.Join(b.dir, "added")))
	require.NoError(t, os.Chtimes(b.dir, stamp(t, b, "world"), stamp(t, b, "world")))
	merged := tree(t, b.dir, true)
	require.NoError(t, a.restore(t.Context(), b, v1.RestoreReplace))
	require.NoFileExists(t, filepath.Join(b.dir, "fifo"))
	require.NoError(t, unix.Mkfifo(filepath.Join(b.dir, "fifo"), 0o640))
	require.Equal(t, merged, tree(t, b.dir, true))
	require.NotEqual(t, whole, fingerprint(t, b.dir), "the FIFO is another one")
	oneImage(t, base)
	err := os.WriteFile(filepath.Join(b.dir, "tenant"), make([]byte, 100<<20), 0o644)
	require.ErrorIs(t, err, unix.ENOSPC, "the limit is still hard")
}

func stamp(t *testing.T, b box, name string) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(b.dir, name))
	require.NoError(t, err)
	return info.ModTime()
}

// oneImage checks that nothing but the image of one volume is left.
func oneImage(t *testing.T, base string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(base, ".images", "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(base, ".images", id+".img")}, list)
	list, err = filepath.Glob(filepath.Join(base, ".re*"))
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestRestoreHardLimitFails: a failed restore leaves the volume and its image.
func TestRestoreHardLimitFails(t *testing.T) {
	b, base := newHardBox(t)
	fillHard(t, b)
	a, _ := takeBackup(t, b)
	b.put(t, "added", "kept")
	want := fingerprint(t, b.dir)
	for _, mode := range []string{v1.RestoreReplace, v1.RestoreMerge} {
		cut := backup{a.data[:len(a.data)-9], a.SnapshotArchive}
		require.ErrorIs(t, cut.restore(t.Context(), b, mode), &v1.Error{Code: v1.InvalidArchive})
		require.Equal(t, want, fingerprint(t, b.dir))
		oneImage(t, base)
	}
}

// TestRestoreHardLimitAfterCrash: a crash before the rename of the new image leaves the
// old tree, one after it the new tree.
func TestRestoreHardLimitAfterCrash(t *testing.T) {
	b, base := newHardBox(t)
	b.put(t, "old", "old")
	stage := filepath.Join(base, ".replacing-"+id)
	image := filepath.Join(base, ".images", id+".img")
	prepare := func() {
		require.NoError(t, os.Mkdir(stage, 0o700))
		run(t, base, "truncate", "-s", "32M", image+".new")
		run(t, base, "mkfs.ext4", "-q", "-F", image+".new")
		run(t, base, "mount", "-o", "loop", image+".new", stage)
		require.NoError(t, os.WriteFile(filepath.Join(stage, "new"), []byte("new"), 0o644))
	}
	prepare()
	again := openHard(t, base)
	require.NoError(t, again.Check(id))
	require.Equal(t, "old", b.get(t, "old"))
	oneImage(t, base)

	prepare()
	require.NoError(t, os.Rename(image+".new", image))
	again = openHard(t, base)
	require.NoError(t, again.Check(id))
	require.Equal(t, "new", b.get(t, "new"))
	require.NoFileExists(t, filepath.Join(b.dir, "old"))
	oneImage(t, base)

	prepare()
	require.NoError(t, again.Remove(t.Context(), id))
	list, err := os.ReadDir(filepath.Join(base, ".images"))
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoDirExists(t, stage)
}

// TestReadersOfHardLimit: a reader never finds the volume missing while its image is
// replaced.
func TestReadersOfHardLimit(t *testing.T) {
	b, _ := newHardBox(t)
	b.put(t, "file", "content")
	a, _ := takeBackup(t, b)
	stop := make(chan struct{})
	done := begin(func() {
		defer close(stop)
		for range 5 {
			require.NoError(t, a.restore(t.Context(), b, v1.RestoreReplace))
		}
	})
	for running := true; running; {
		select {
		case <-stop:
			running = false
		default:
		}
		list, err := b.List(t.Context(), id, ".")
		require.NoError(t, err)
		require.Len(t, list, 1)
	}
	<-done
}
