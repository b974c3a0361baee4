package volume_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// TestTypes: the type of a file is that of its first bytes, whatever its name is; what cannot or may not be read, and
// what is no file, has none.
func TestTypes(t *testing.T) {
	b := newBox(t, options())
	want := map[string]string{
		"text.jar": "text/plain; charset=utf-8", "page": "text/html; charset=utf-8", "zip.txt": "application/zip", "a.tar": "application/x-tar",
		"a.tar.gz": "application/gzip", "a.tar.bz2": "application/x-bzip2", "a.tar.zst": "application/zstd", "image": "image/png",
		"zeros": "application/octet-stream", "empty": "text/plain; charset=utf-8", "secret": "", "folder": "", "fifo": "", "none": "", "../x": "", "": "",
	}
	b.put(t, "text.jar", "motd=welcome\n")
	b.put(t, "page", "<html><body>")
	b.put(t, "zip.txt", string(pack(t, "zip", []part{file("a")})))
	for _, format := range []string{"tar", "tar.gz", "tar.bz2", "tar.zst"} {
		b.put(t, "a."+format, string(pack(t, format, []part{{name: "a", kind: tar.TypeReg, data: "x"}})))
	}
	b.put(t, "image", "\x89PNG\x0d\x0a\x1a\x0a")
	b.put(t, "zeros", strings.Repeat("\x00", 4096))
	b.put(t, "empty", "")
	b.put(t, "secret", "text")
	b.put(t, "folder/x", "")
	require.NoError(t, syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o666))
	var paths []string
	for p := range want {
		paths = append(paths, p)
	}
	types, err := b.Types(v1.WithDenied(t.Context(), [][]string{{"/secret"}}), id, paths)
	require.NoError(t, err)
	for i, p := range paths {
		require.Equal(t, want[p], types[i], p)
	}

	few := options()
	few.Limits = volume.Limits{MimeFiles: 2}
	types, err = reopen(t, b, few).Types(t.Context(), id, []string{"image", "page", "zeros"})
	require.NoError(t, err)
	require.Equal(t, []string{"image/png", "text/html; charset=utf-8", ""}, types)
	few.Limits = volume.Limits{MimeTime: 1}
	types, err = reopen(t, b, few).Types(t.Context(), id, []string{"image"})
	require.NoError(t, err)
	require.Equal(t, []string{""}, types)
}

// TestChangedAt: a program can set the time of modification of a file, and not when it was changed.
func TestChangedAt(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "a", "x")
	began := time.Now().Unix() - 1
	old := time.Unix(1_000_000_000, 0)
	require.NoError(t, os.Chtimes(filepath.Join(b.dir, "a"), old, old))
	list, err := b.List(t.Context(), id, ".")
	require.NoError(t, err)
	require.Equal(t, old.Unix(), list[0].ModifiedAt)
	require.Greater(t, list[0].ChangedAt, began)
	found, err := b.Manager.Search(t.Context(), id, ".", "a")
	require.NoError(t, err)
	require.Equal(t, []v1.FoundFile{{Path: "a", Type: v1.TypeFile, Size: 1, ModifiedAt: old.Unix(), ChangedAt: list[0].ChangedAt}}, found.Files)
}
