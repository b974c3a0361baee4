package docker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWritable: the layer as a directory, the files that the
// engine mounts, and the layer's size as the engine counts it.
func TestWritable(t *testing.T) {
	r := newRig(t)
	s := r.spec("writes", "dd if=/dev/zero of=/layer bs=1M count=2; dd if=/dev/zero bs=1M count=1 >> /etc/hosts; touch /done; sleep 1000")
	id := r.run(t, s)
	var size int64
	require.Eventually(t, func() bool {
		w, err := r.Writable(t.Context(), s.Name)
		require.NoError(t, err)
		require.Equal(t, id, w.ContainerID)
		size = w.Size
		for _, dir := range w.Dirs {
			if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
				size += sizeOf(t, filepath.Join(dir, "layer"))
			}
		}
		for _, file := range w.Files {
			size += sizeOf(t, file)
		}
		return size >= 3<<20
	}, time.Minute, 50*time.Millisecond, "%d bytes were found", size)
	size, err := r.size(t.Context(), s.Name, id)
	require.NoError(t, err)
	require.GreaterOrEqual(t, size, int64(2<<20))
}

// TestPlacesOfAStart: the engine names /etc/hosts and its like at the start, so the places of a container that was
// only created are asked for again.
func TestPlacesOfAStart(t *testing.T) {
	r := newRig(t)
	s := r.spec("starts", "sleep 1000")
	_, err := r.Create(t.Context(), s)
	require.NoError(t, err)
	w, err := r.Writable(t.Context(), s.Name)
	require.NoError(t, err)
	require.False(t, w.Local)
	require.NoError(t, r.Start(t.Context(), s.Name))
	w, err = r.Writable(t.Context(), s.Name)
	require.NoError(t, err)
	require.Equal(t, len(w.Dirs) > 0, w.Local)
	require.Len(t, w.Files, 3)
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Size()
}
