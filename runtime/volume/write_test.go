package volume_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// TestConcurrentOverwrites checks that a replaced file is subtracted once.
func TestConcurrentOverwrites(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.SetLimit(id, 10<<20, v1.Usage{})
	require.NoError(t, b.Write(ctx, id, "other", content(1<<20)))
	require.NoError(t, b.Write(ctx, id, "f", content(8<<20)))
	var uploads []*io.PipeWriter
	ended := make(chan error, 5)
	for range cap(ended) {
		r, w := io.Pipe()
		go func() { ended <- b.Write(ctx, id, "f", r) }()
		_, err := w.Write([]byte("x")) // the write has read the old file's size by now
		require.NoError(t, err)
		uploads = append(uploads, w)
	}
	for _, w := range uploads {
		require.NoError(t, w.Close())
		require.NoError(t, <-ended)
	}
	used := b.Used(id).Bytes
	measured, err := b.Scan(ctx, id)
	require.NoError(t, err)
	require.InDelta(t, measured.Bytes, used, 8<<10)
	require.NoError(t, b.Write(ctx, id, "f", content(512<<10)))

	r, w := io.Pipe()
	go func() { ended <- b.Write(ctx, id, "f", r) }()
	_, err = w.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, b.Delete(ctx, id, "f", nil))
	require.NoError(t, w.Close())
	require.NoError(t, <-ended)
	require.InDelta(t, measured.Bytes, b.Used(id).Bytes, 8<<10)
}

func TestWrite(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	require.NoError(t, b.Write(ctx, id, "a/b/c.txt", strings.NewReader("one")))
	require.NoError(t, b.Write(ctx, id, "./a//b/c.txt", strings.NewReader("two")))
	require.Equal(t, "two", b.get(t, "a/b/c.txt"))
	info, err := os.Stat(filepath.Join(b.dir, "a/b/c.txt"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode())
	info, err = os.Stat(filepath.Join(b.dir, "a/b"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode().Perm())

	require.Equal(t, "file_exists", code(b.Write(ctx, id, "a/b", strings.NewReader("x"))))
	err = b.Write(ctx, id, "a/b/c.txt/d", strings.NewReader("x"))
	require.EqualError(t, err, "File already exists at path: a/b/c.txt")
	require.Equal(t, []string{"a", "a/b", "a/b/c.txt"}, b.names(t), "nothing temporary is left")
}

// TestRefusedWriteCreatesNoParents: a precondition that does not hold leaves no folders.
func TestRefusedWriteCreatesNoParents(t *testing.T) {
	b := newBox(t, options())
	refused := errors.New("refused")
	_, err := b.Manager.Write(t.Context(), id, "a/b/c.txt", content(1), func(old fs.FileInfo) error {
		require.Nil(t, old)
		return refused
	})
	require.ErrorIs(t, err, refused)
	require.Empty(t, b.names(t))
}

// TestWriteKeepsMode: a script that is edited stays executable.
func TestWriteKeepsMode(t *testing.T) {
	b := newBox(t, options())
	for _, mode := range []fs.FileMode{0o755, 0o600} {
		require.NoError(t, b.Write(t.Context(), id, "start.sh", content(9)))
		require.NoError(t, b.Chmod(t.Context(), id, "start.sh", mode))
		require.NoError(t, b.Write(t.Context(), id, "start.sh", content(10)))
		info, err := os.Stat(filepath.Join(b.dir, "start.sh"))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode())
		require.EqualValues(t, 10, info.Size())
	}
}

func TestWriteThroughInnerLink(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "real/config", "old")
	require.NoError(t, os.Symlink("real/config", filepath.Join(b.dir, "link")))
	require.NoError(t, os.Symlink("../link", filepath.Join(b.dir, "real/chain")))
	require.NoError(t, b.Write(t.Context(), id, "real/chain", strings.NewReader("new")))
	require.Equal(t, "new", b.get(t, "real/config"))
	target, err := os.Readlink(filepath.Join(b.dir, "link"))
	require.NoError(t, err)
	require.Equal(t, "real/config", target)
}

// TestWriteThroughLinkedFolder: ".." behind a link to a folder is the folder above its target.
func TestWriteThroughLinkedFolder(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "x/y/file", "")
	b.put(t, "x/f", "old")
	for name, target := range map[string]string{"a": "d/../e", "d": "x/y", "x/e": "f"} {
		require.NoError(t, os.Symlink(target, filepath.Join(b.dir, name)))
	}
	require.NoError(t, b.Write(t.Context(), id, "a", strings.NewReader("new")))
	require.Equal(t, "new", b.get(t, "x/f"))
	require.NoFileExists(t, filepath.Join(b.dir, "f"))
}

// cut is a body whose client disconnects in the middle.
type cut struct{ n int }

func (c *cut) Read(p []byte) (int, error) {
	if c.n -= len(p); c.n < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

func TestFailedWriteKeepsContent(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "f", "old")
	require.ErrorIs(t, b.Write(t.Context(), id, "f", &cut{n: 3 << 20}), io.ErrUnexpectedEOF)
	require.Equal(t, "old", b.get(t, "f"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Write(ctx, id, "f", strings.NewReader("new")), context.Canceled)
	require.Equal(t, []string{"f"}, b.names(t))
	require.Equal(t, "old", b.get(t, "f"))
}

// TestFullDisk works on a file system of 2 MiB.
func TestFullDisk(t *testing.T) {
	top := t.TempDir()
	require.NoError(t, unix.Mount("berth-test", top, "tmpfs", 0, "size=2m"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(top, unix.MNT_DETACH)) })
	b := newBoxIn(t, top, options())
	ctx := t.Context()
	require.NoError(t, b.Write(ctx, id, "f", content(1<<20)))
	b.put(t, "a.tar.gz", string(pack(t, "tar.gz", []part{file("ok"), {name: "x", data: strings.Repeat("x", 3<<20)}})))
	before := tree(t, b.dir, true)
	for name, call := range map[string]func() error{
		"write":      func() error { return b.Write(ctx, id, "f", content(3<<20)) },
		"new":        func() error { return b.Write(ctx, id, "new", content(3<<20)) },
		"copy":       func() error { return b.Copy(ctx, id, "f", "copy") },
		"decompress": func() error { return b.Decompress(ctx, id, "a.tar.gz", "out") },
		"compress": func() error {
			_, err := b.Compress(ctx, id, v1.Compression{Output: "z", Format: "tar"})
			return err
		},
	} {
		require.ErrorIs(t, call(), v1.ErrDiskFull, name)
		require.Empty(t, cmp.Diff(before, tree(t, b.dir, true)), "%s leaves all as it was", name)
	}
	require.NoError(t, b.Delete(ctx, id, "f", nil))
	require.NoError(t, b.Write(ctx, id, "new", content(1<<20)))
}

func TestReadOnly(t *testing.T) {
	top := t.TempDir()
	require.NoError(t, unix.Mount("berth-test", top, "tmpfs", 0, "size=2m"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(top, unix.MNT_DETACH)) })
	b := newBoxIn(t, top, options())
	b.put(t, "f", "old")
	require.NoError(t, unix.Mount("", top, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	require.ErrorIs(t, b.Write(t.Context(), id, "f", content(1)), v1.ErrWriteDenied)
	require.EqualError(t, b.Mkdir(t.Context(), id, "d"), "Failed to write file: permission denied")
	require.ErrorIs(t, b.Delete(t.Context(), id, "f", nil), v1.ErrWriteDenied)
	list, err := b.List(t.Context(), id, ".")
	require.NoError(t, err)
	require.Len(t, list, 1)
}
