package volume_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestSpecialFilesAreNotOpened(t *testing.T) {
	b := newBox(t, options())
	require.NoError(t, syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o666))
	b.put(t, "file", "1")
	opened := begin(func() { // it waits until the other end is opened
		if f, err := os.OpenFile(filepath.Join(b.dir, "fifo"), os.O_WRONLY, 0); err == nil {
			f.Close()
		}
	})
	for range 20 {
		for _, f := range fields {
			switch f.name {
			case "open", "copy source", "decompress archive":
				require.Equal(t, "invalid_request", code(f.call(t.Context(), b, "fifo")), f.name)
			case "list", "search":
				require.Equal(t, "path_not_found", code(f.call(t.Context(), b, "fifo")), f.name)
			}
		}
	}
	select {
	case <-opened:
		t.Fatal("the FIFO was opened")
	default:
	}
	end, err := os.OpenFile(filepath.Join(b.dir, "fifo"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	<-opened
	require.NoError(t, end.Close())
	a, err := b.Compress(t.Context(), id, v1.Compression{Output: "a", Format: "tar"})
	require.NoError(t, err)
	require.NoError(t, b.Decompress(t.Context(), id, a.Path, "out"))
	require.Equal(t, map[string]string{"file": "-rw-r--r-- 1 bytes, 83dcefb7"}, tree(t, filepath.Join(b.dir, "out"), false))
}
