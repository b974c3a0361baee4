package volume_test

import (
	"bytes"
	"context"
	"fmt"
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
	"berth/runtime/volume"
)

// content returns n bytes without holes.
func content(n int) *bytes.Reader { return bytes.NewReader(bytes.Repeat([]byte{'0'}, n)) }

func TestSizeLimit(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.SetLimit(id, 1<<20, v1.Usage{})
	require.NoError(t, b.Write(ctx, id, "half", content(512<<10)))
	require.NoError(t, b.Write(ctx, id, "half", content(1000<<10)), "what is replaced does not count")
	used := b.Used(id).Bytes
	require.InDelta(t, 1000<<10, used, 8192)
	for name, call := range map[string]func() error{
		"write":  func() error { return b.Write(ctx, id, "more", content(64<<10)) },
		"over":   func() error { return b.Write(ctx, id, "half", content(1100<<10)) },
		"copy":   func() error { return b.Copy(ctx, id, "half", "copy") },
		"mkdirs": func() error { return b.Mkdir(ctx, id, strings.Repeat("d/", 12)) },
		"compress": func() error {
			_, err := b.Compress(ctx, id, v1.Compression{Output: "a", Format: "tar"})
			return err
		},
	} {
		require.ErrorIs(t, call(), v1.ErrSizeLimit, name)
	}
	require.Len(t, b.get(t, "half"), 1000<<10, "the old content is intact")
	require.InDelta(t, used, b.Used(id).Bytes, 50<<10)

	b.put(t, "a.tar.gz", string(pack(t, "tar.gz", []part{{name: "x", data: strings.Repeat("x", 200<<10)}})))
	require.ErrorIs(t, b.Decompress(ctx, id, "a.tar.gz", "out"), v1.ErrSizeLimit)
	require.NoError(t, b.Delete(ctx, id, "half"))
	require.Less(t, b.Used(id).Bytes, int64(64<<10))
	require.NoError(t, b.Decompress(ctx, id, "a.tar.gz", "out"))
	require.InDelta(t, 200<<10, b.Used(id).Bytes, 64<<10)
}

func TestUsageMatchesScan(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.SetLimit(id, 0, v1.Usage{Bytes: 12345})
	require.Equal(t, int64(12345), b.Used(id).Bytes, "as it was before the restart")
	_, err := b.Scan(ctx, id)
	require.NoError(t, err)
	require.NoError(t, b.Write(ctx, id, "a/b/c", content(100_000)))
	require.NoError(t, b.Write(ctx, id, "a/b/c", content(50_000)))
	require.NoError(t, b.Copy(ctx, id, "a", "copy"))
	require.NoError(t, b.Rename(ctx, id, "copy", "moved/copy"))
	_, err = b.Compress(ctx, id, v1.Compression{Output: "z", Format: "tar"})
	require.NoError(t, err)
	require.NoError(t, b.Decompress(ctx, id, "z.tar", "out"))
	require.NoError(t, b.Decompress(ctx, id, "z.tar", "out"), "again over what is there")
	require.NoError(t, b.Delete(ctx, id, "a"))
	kept := b.Used(id).Bytes
	measured, err := b.Scan(ctx, id)
	require.NoError(t, err)
	require.InDelta(t, measured.Bytes, kept, 16<<10)
	require.Equal(t, measured, b.Used(id))
}

func TestScan(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", strings.Repeat("x", 100_000))
	require.NoError(t, os.Link(filepath.Join(b.dir, "file"), filepath.Join(b.dir, "hard")))
	require.NoError(t, os.Symlink(b.outside, filepath.Join(b.dir, "link")))
	f, err := os.Create(filepath.Join(b.dir, "sparse"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(1<<40))
	require.NoError(t, f.Close())
	deep(t, b.dir, long, 300, 100_000)
	size, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.InDelta(t, 200_000+300*4096, size.Bytes, 40_000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Scan(ctx, id)
	require.ErrorIs(t, err, context.Canceled)
}

// long is a name that makes a path too long soon. Beware of very many: go test
// logs every path that is opened, and keeps the log.
var long = strings.Repeat("d", 200)

// onTooDeep makes n folders inside each other, too long for any path, with a file in
// the last.
func deep(t testing.TB, dir, name string, n, size int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	for range n {
		require.NoError(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
		fd = next
	}
	f, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	require.NoError(t, err)
	_, err = unix.Write(f, make([]byte, size))
	require.NoError(t, err)
	require.NoError(t, unix.Close(f))
	require.NoError(t, unix.Close(fd))
}

func TestDeepTree(t *testing.T) {
	b := newBox(t, options())
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, "x"), 0o755))
	deep(t, filepath.Join(b.dir, "x"), "d", 4096, 10)
	_, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	found, err := b.Search(t.Context(), id, ".", "file")
	require.NoError(t, err)
	require.Empty(t, found.Files, "search ends at the limit of depth")
	_, err = b.Compress(t.Context(), id, v1.Compression{Output: "a"})
	require.Equal(t, "invalid_request", code(err))
	require.Equal(t, "invalid_request", code(b.Copy(t.Context(), id, "x", "y")))
	before := descriptors(t)
	require.NoError(t, b.Delete(t.Context(), id, "x"))
	require.Equal(t, before, descriptors(t))
	require.Empty(t, b.names(t))
}

func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

func TestSweep(t *testing.T) {
	b := newBox(t, options())
	left := ".berth-tmp-" + strings.Repeat("ab", 16)
	b.put(t, left+"/sub/file", "left")
	b.put(t, left[:len(left)-1]+"0", "left")
	b.put(t, left+"-1-2/x", "moved up by a reaper")
	b.put(t, ".berth-tmp-short", "a tenant's")
	b.put(t, "sub/"+left, "a tenant's")
	require.NoError(t, b.Sweep(t.Context(), id))
	require.Equal(t, []string{".berth-tmp-short", "sub", "sub/" + left}, b.names(t))
}

// TestSweepKeepsActiveFiles sweeps while a file is being written.
func TestSweepKeepsActiveFiles(t *testing.T) {
	b := newBox(t, options())
	slow := sweeping{t: t, b: b, left: 3}
	require.NoError(t, b.Write(t.Context(), id, "f", &slow))
	require.Len(t, b.get(t, "f"), 3<<18)
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
	require.ErrorIs(t, b.Check(id), v1.ErrDirectoryMissing, "it is out of the way at once")
	require.NoError(t, b.Remove(t.Context(), id), "it goes on")
	require.NoError(t, b.Remove(t.Context(), id), "again")
	list, err := os.ReadDir(filepath.Dir(b.dir))
	require.NoError(t, err)
	require.Empty(t, list)
	require.FileExists(t, filepath.Join(b.outside, "secret"))
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
	require.NoError(t, b.Delete(ctx, id, "f"))
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
	require.ErrorIs(t, b.Delete(t.Context(), id, "f"), v1.ErrWriteDenied)
	list, err := b.List(t.Context(), id, ".")
	require.NoError(t, err)
	require.Len(t, list, 1)
}

// TestOwner needs root, as the other tests that mount do.
func TestOwner(t *testing.T) {
	b := newBox(t, volume.Options{UID: 4321, GID: 1234})
	ctx := t.Context()
	require.NoError(t, b.Write(ctx, id, "made/file", content(1)))
	require.NoError(t, b.Mkdir(ctx, id, "folder"))
	require.NoError(t, os.Symlink("made", filepath.Join(b.dir, "made/link")))
	require.NoError(t, b.Copy(ctx, id, "made", "copy"))
	for _, format := range v1.Formats {
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
