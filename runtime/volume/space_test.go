package volume_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// free returns how many bytes are free on a file system.
func free(t testing.TB, dir string) int64 {
	t.Helper()
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	return int64(st.Bavail) * int64(st.Bsize)
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
	require.NoError(t, b.Delete(ctx, id, "dir"), "what frees space is never refused")
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

// steps is a context that counts the steps of an operation.
type steps struct {
	context.Context
	n *int
}

func (s steps) Err() error { *s.n++; return s.Context.Err() }

// TestHugeSparseFiles copies a file of 8 TiB with 4 KiB on disk, and checks that
// archives of it are refused, both within a few steps.
func TestHugeSparseFiles(t *testing.T) {
	b := newBox(t, options())
	const size = 8 << 40
	b.put(t, "in/sparse", strings.Repeat("x", 4096))
	require.NoError(t, os.Truncate(filepath.Join(b.dir, "in/sparse"), size))
	for _, format := range v1.Formats {
		n := 0
		_, err := b.Compress(steps{t.Context(), &n}, id, v1.Compression{Output: "a", Format: format, Paths: []string{"in"}})
		require.Equal(t, "size_limit_exceeded", code(err), format)
		require.Less(t, n, 100, format)
	}
	n := 0
	require.NoError(t, b.Copy(steps{t.Context(), &n}, id, "in", "copy"))
	require.Less(t, n, 100)
	info, err := os.Stat(filepath.Join(b.dir, "copy/sparse"))
	require.NoError(t, err)
	require.Equal(t, int64(size), info.Size())
	used, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.Less(t, used.Bytes, int64(64<<10))

	require.NoError(t, os.Truncate(filepath.Join(b.dir, "in/sparse"), 300<<20))
	for _, name := range []string{"2", "3", "4"} {
		require.NoError(t, b.Copy(t.Context(), id, "in/sparse", "in/"+name))
	}
	_, err = b.Compress(t.Context(), id, v1.Compression{Output: "three", Paths: []string{"in/sparse", "in/2", "in/3"}})
	require.NoError(t, err)
	_, err = b.Compress(t.Context(), id, v1.Compression{Output: "four", Paths: []string{"in"}})
	require.Equal(t, "size_limit_exceeded", code(err), "together they are too many")

	f, err := os.Create(filepath.Join(b.dir, "allocated"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, 4<<20))
	small := options()
	small.Limits = volume.Limits{HoleBytes: 1 << 20}
	_, err = reopen(t, b, small).Files().Compress(t.Context(), id, v1.Compression{Output: "allocated", Paths: []string{"allocated"}})
	require.NoError(t, err, "what is allocated is no hole")
}

// TestSearchIsBounded checks the bounds of entries, results and time.
func TestSearchIsBounded(t *testing.T) {
	b := newBox(t, options())
	for i := range 600 {
		b.put(t, strconv.Itoa(i), "")
	}
	for _, c := range []struct {
		limits volume.Limits
		most   int
		cut    bool
	}{
		{volume.Limits{}, 600, false},
		{volume.Limits{SearchResults: 600}, 600, false},
		{volume.Limits{SearchResults: 599}, 599, true},
		{volume.Limits{SearchEntries: 100}, 100, true},
		{volume.Limits{SearchTime: 1}, 255, true},
	} {
		opt := options()
		opt.Limits = c.limits
		found, err := reopen(t, b, opt).Files().Search(t.Context(), id, ".", "*")
		require.NoError(t, err)
		require.Len(t, found.Files, c.most)
		require.Equal(t, c.cut, found.Truncated)
	}
}
