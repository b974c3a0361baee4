package volume_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestSweep removes what an earlier run and interrupted removals left, and nothing of the volume.
func TestSweep(t *testing.T) {
	b := newBox(t, options())
	require.NoError(t, b.Sweep(t.Context(), id), "there is nothing yet")
	for _, name := range []string{"0123-0/sub", "0123-1", "removed-0123/deep/er"} {
		require.NoError(t, os.MkdirAll(filepath.Join(b.temps(), name), 0o700))
	}
	b.put(t, "removed-0123", "a tenant's")
	require.NoError(t, b.Sweep(t.Context(), id))
	noTemps(t, b)
	require.Equal(t, []string{"removed-0123"}, b.names(t))
}

// TestSweepKeepsActiveFiles sweeps while a file is being written.
func TestSweepKeepsActiveFiles(t *testing.T) {
	b := newBox(t, options())
	slow := sweeping{t: t, b: b, left: 3}
	require.NoError(t, b.Write(t.Context(), id, "f", &slow))
	require.Len(t, b.get(t, "f"), 3<<18)
	noTemps(t, b)
}

type sweeping struct {
	t    *testing.T
	b    box
	left int
}

func (s *sweeping) Read(p []byte) (int, error) {
	require.NoError(s.t, s.b.Sweep(s.t.Context(), id))
	if s.left--; s.left < 0 {
		return 0, fs.ErrClosed
	}
	if s.left == 0 {
		return len(p), io.EOF
	}
	return len(p), nil
}

// planting is a context that creates a file of 1 MiB in each removed folder at each step.
type planting struct {
	context.Context
	t    *testing.T
	b    box
	made int
}

func (p *planting) Err() error {
	folders, err := filepath.Glob(filepath.Join(p.b.temps(), "removed-*"))
	require.NoError(p.t, err)
	for _, dir := range folders {
		p.made++
		require.NoError(p.t, os.WriteFile(filepath.Join(dir, fmt.Sprint(p.made)), make([]byte, 1<<20), 0o600))
	}
	return nil
}

// TestRemovedFolderThatGrows: a container that had a folder open creates files in it while berth
// removes it. Until a scan has removed them, they count.
func TestRemovedFolderThatGrows(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "folder/file", "content")
	require.Error(t, b.Delete(&planting{t.Context(), t, b, 0}, id, "folder", nil))
	require.Empty(t, b.names(t))
	folders, err := filepath.Glob(filepath.Join(b.temps(), "removed-*"))
	require.NoError(t, err)
	require.Len(t, folders, 1)
	left, err := os.ReadDir(folders[0])
	require.NoError(t, err)
	require.NotEmpty(t, left)

	busy := filepath.Join(folders[0], "mounted") // so that no removal succeeds
	require.NoError(t, os.Mkdir(busy, 0o700))
	require.NoError(t, unix.Mount("berth-test", busy, "tmpfs", 0, "size=4m"))
	require.NoError(t, os.WriteFile(filepath.Join(busy, "file"), make([]byte, 1<<20), 0o600))
	use, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.GreaterOrEqual(t, use.Bytes, int64(1<<20))
	require.NoError(t, unix.Unmount(busy, 0))
	use, err = b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.Less(t, use.Bytes, int64(1<<20))
	noTemps(t, b)
}

// TestMountedVolume: new files cannot be renamed into a file system that is mounted at the
// volume's directory.
func TestMountedVolume(t *testing.T) {
	b := newBox(t, options())
	require.NoError(t, unix.Mount("berth-test", b.dir, "tmpfs", 0, "size=4m"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(b.dir, 0)) })
	b.put(t, "file", "content")
	require.Equal(t, "unavailable", code(b.Write(t.Context(), id, "file", content(1))))
	require.Equal(t, "unavailable", code(b.Delete(t.Context(), id, "file", nil)))
	require.Equal(t, "content", b.get(t, "file"))
	noTemps(t, b)
}
