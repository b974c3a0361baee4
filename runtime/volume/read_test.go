package volume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestListMemoryIsBounded lists a folder with more files than the memory allows.
func TestListMemoryIsBounded(t *testing.T) {
	opt := options()
	opt.Limits.ListBytes = 16 << 10
	b := newBox(t, opt)
	for i := range 60 {
		b.put(t, fmt.Sprint("fits/", strings.Repeat("n", 100), i), "")
		b.put(t, fmt.Sprint("many/", strings.Repeat("n", 200), i), "")
	}
	list, err := b.List(t.Context(), id, "fits")
	require.NoError(t, err)
	require.Len(t, list, 60)
	_, err = b.List(t.Context(), id, "many")
	require.Equal(t, "size_limit_exceeded", code(err))
}

func TestList(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "b.txt", "12345")
	b.put(t, "a/inner", "")
	b.put(t, "Z/inner", "")
	require.NoError(t, os.Symlink("a", filepath.Join(b.dir, "to-a")))
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, ".berth-tmp-"+strings.Repeat("0", 32)), 0o700))
	list, err := b.List(t.Context(), id, ".")
	require.NoError(t, err)
	var seen []string
	for _, e := range list {
		require.NotZero(t, e.ModifiedAt)
		seen = append(seen, e.Type+" "+e.Name+" "+e.Mode)
	}
	want := []string{"directory Z 0755", "directory a 0755", "file b.txt 0644", "file to-a 0777"}
	require.Empty(t, cmp.Diff(want, seen))
	require.Equal(t, int64(5), list[2].Size)
	require.Zero(t, list[0].Size)
	require.True(t, list[3].Symlink)

	through, err := b.List(t.Context(), id, "to-a")
	require.NoError(t, err)
	require.Len(t, through, 1)
	empty, err := b.List(t.Context(), id, "a/")
	require.NoError(t, err)
	require.NotNil(t, empty)
	for _, p := range []string{"none", "b.txt", "b.txt/x"} {
		_, err = b.List(t.Context(), id, p)
		require.EqualError(t, err, "Path not found: "+p)
	}
}

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
