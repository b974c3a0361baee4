package volume_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

func TestSizeLimit(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.SetLimit(id, 1<<20, v1.Usage{})
	require.NoError(t, b.Write(ctx, id, "half", content(512<<10)))
	require.NoError(t, b.Write(ctx, id, "half", content(1000<<10)), "a replaced file does not count")
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
	require.NoError(t, b.Delete(ctx, id, "half", nil))
	require.Less(t, b.Used(id).Bytes, int64(64<<10))
	require.NoError(t, b.Decompress(ctx, id, "a.tar.gz", "out"))
	require.InDelta(t, 200<<10, b.Used(id).Bytes, 64<<10)
}

// following is a body that waits in its middle until a file has a size.
type following struct {
	io.Reader
	file string
	size int64
	left int // bytes before it waits
}

func (f *following) Read(p []byte) (int, error) {
	for f.left <= 0 {
		if info, err := os.Stat(f.file); err == nil && info.Size() == f.size {
			break
		}
		runtime.Gosched()
	}
	n, err := f.Reader.Read(p[:min(len(p), 64<<10)])
	f.left -= n
	return n, err
}

// TestUploadsCountOnce: two uploads fit in the limit together. One goes on while the other gets its name.
func TestUploadsCountOnce(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.SetLimit(id, 4<<20, v1.Usage{})
	for range 20 {
		second := &following{content(7 << 18), filepath.Join(b.dir, "first"), 2 << 20, 1 << 20}
		var err error
		done := begin(func() { err = b.Write(ctx, id, "second", second) })
		require.NoError(t, b.Write(ctx, id, "first", content(2<<20)))
		<-done
		require.NoError(t, err)
		require.NoError(t, b.Delete(ctx, id, "first", nil))
		require.NoError(t, b.Delete(ctx, id, "second", nil))
	}
}

// drip is a body without end that records the free space at each piece.
type drip struct {
	t     *testing.T
	dir   string
	least int64
}

func (d *drip) Read(p []byte) (int, error) {
	d.least = min(d.least, free(d.t, d.dir))
	return len(p), nil
}

// TestFileOperationsKeepReserve checks that 64 MiB of a file system of 128 MiB stay
// free for the store, whatever file operations run.
func TestFileOperationsKeepReserve(t *testing.T) {
	const reserve = 64 << 20
	top := inMemory(t, "128m")
	opt := options()
	opt.StoreDir = top
	b := newBoxIn(t, top, opt)
	ctx := t.Context()
	require.NoError(t, b.Write(ctx, id, "dir/f", content(25<<20)))
	b.put(t, "a.tar.gz", string(pack(t, "tar.gz", []part{file("ok"), {name: "x", data: strings.Repeat("x", 60<<20)}})))
	before := tree(t, b.dir, true)
	endless := &drip{t: t, dir: top, least: 1 << 40}
	calls := map[string]func() error{
		"upload":     func() error { return b.Write(ctx, id, "new", endless) },
		"overwrite":  func() error { return b.Write(ctx, id, "dir/f", endless) },
		"decompress": func() error { return b.Decompress(ctx, id, "a.tar.gz", "out") },
	}
	for name, call := range calls {
		require.ErrorIs(t, call(), v1.ErrDiskFull, name)
		require.Empty(t, cmp.Diff(before, tree(t, b.dir, true)), "%s leaves all as it was", name)
	}
	require.GreaterOrEqual(t, endless.least, int64(reserve)-1<<20)
	require.NoError(t, b.Copy(ctx, id, "dir/f", "g"))
	for name, call := range map[string]func() error{
		"copy":   func() error { return b.Copy(ctx, id, "dir/f", "h") },
		"folder": func() error { return b.Copy(ctx, id, "dir", "h") },
		"compress": func() error {
			_, err := b.Compress(ctx, id, v1.Compression{Output: "z", Format: "tar", Paths: []string{"dir", "g"}})
			return err
		},
	} {
		require.ErrorIs(t, call(), v1.ErrDiskFull, name)
		require.GreaterOrEqual(t, free(t, top), int64(reserve))
	}
	fillTo(t, top, reserve-4096)
	require.ErrorIs(t, b.Mkdir(ctx, id, "d"), v1.ErrDiskFull)
	require.ErrorIs(t, b.Write(ctx, id, "small", content(1)), v1.ErrDiskFull)
	require.NoError(t, b.Delete(ctx, id, "dir", nil), "a deletion is never refused")
	require.NoError(t, b.Write(ctx, id, "small", content(1)))
}

// fillTo writes to the disk directly, as a container does, until so many bytes are
// free.
func fillTo(t *testing.T, dir string, left int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, free(t, dir)-left))
}

// TestNoReserveOnSeparateDisk checks that volumes may fill a disk that the store is
// not on.
func TestNoReserveOnSeparateDisk(t *testing.T) {
	top := inMemory(t, "128m")
	opt := options()
	opt.StoreDir = t.TempDir()
	b := newBoxIn(t, top, opt)
	require.NoError(t, b.Write(t.Context(), id, "f", content(120<<20)))
}

// TestUploadsShareFreeSpace starts uploads that all check the free space before any
// of them writes.
func TestUploadsShareFreeSpace(t *testing.T) {
	top := inMemory(t, "128m")
	opt := options()
	opt.StoreDir = top
	b := newBoxIn(t, top, opt)
	fillTo(t, top, 68<<20)
	ended := make(chan error, 8)
	for i := range cap(ended) {
		go func() { ended <- b.Write(t.Context(), id, strconv.Itoa(i), content(3<<20)) }()
	}
	done := 0
	for range cap(ended) {
		if err := <-ended; err == nil {
			done++
		} else {
			require.ErrorIs(t, err, v1.ErrDiskFull)
		}
	}
	require.LessOrEqual(t, done, 1)
	require.GreaterOrEqual(t, free(t, top), int64(64<<20))
}

// TestEmptyFilesTakeSpace checks that each empty file counts a block, as it takes an
// inode.
func TestEmptyFilesTakeSpace(t *testing.T) {
	const files = 3000
	b := newBox(t, options())
	for i := range files {
		f, err := os.Create(filepath.Join(b.dir, fmt.Sprint(i)))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, os.Symlink("x", filepath.Join(b.dir, fmt.Sprint("link", i))))
	}
	use, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, 2*files+1, use.Files)
	require.GreaterOrEqual(t, use.Bytes, int64(2*files*4096))
	require.Equal(t, use, b.Used(id))
}

// TestEmptyFilesReachLimit checks that empty files are refused at the limit.
func TestEmptyFilesReachLimit(t *testing.T) {
	const limit = 64 * 4096
	ctx := context.Background()
	for name, makeOne := range map[string]func(b box, i int) error{
		"write": func(b box, i int) error { return b.Write(ctx, id, fmt.Sprint("f", i), bytes.NewReader(nil)) },
		"mkdir": func(b box, i int) error { return b.Mkdir(ctx, id, fmt.Sprint("d", i)) },
		"copy":  func(b box, i int) error { return b.Copy(ctx, id, "empty", fmt.Sprint("c", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, options())
			b.put(t, "empty", "")
			b.SetLimit(id, limit, v1.Usage{})
			made := 0
			for ; made < 100; made++ {
				if err := makeOne(b, made); err != nil {
					require.ErrorIs(t, err, v1.ErrSizeLimit)
					break
				}
			}
			require.InDelta(t, 64, made, 4)
			use, err := b.Scan(ctx, id)
			require.NoError(t, err)
			require.LessOrEqual(t, use.Bytes, int64(limit+2*4096))
		})
	}
}

func TestEmptyArchivedFilesCount(t *testing.T) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := range 200 {
		h := &tar.Header{Name: fmt.Sprint("f", i), Typeflag: tar.TypeReg, Mode: 0o644}
		if i%2 > 0 {
			h = &tar.Header{Name: fmt.Sprint("l", i), Typeflag: tar.TypeSymlink, Linkname: "f0", Mode: 0o777}
		}
		require.NoError(t, w.WriteHeader(h))
	}
	require.NoError(t, w.Close())
	b := newBox(t, options())
	b.put(t, "a.tar", buf.String())
	_, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	b.SetLimit(id, 100*4096+int64(buf.Len()), v1.Usage{})
	require.ErrorIs(t, b.Decompress(t.Context(), id, "a.tar", "."), v1.ErrSizeLimit)
	b.SetLimit(id, 300*4096+int64(buf.Len()), v1.Usage{})
	require.NoError(t, b.Decompress(t.Context(), id, "a.tar", "."))
	used := b.Used(id)
	measured, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.InDelta(t, measured.Bytes, used.Bytes, 64<<10)
}
