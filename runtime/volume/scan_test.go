package volume_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

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
	require.NoError(t, b.Decompress(ctx, id, "z.tar", "out"), "over the files that exist")
	require.NoError(t, b.Delete(ctx, id, "a", nil))
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
	deep(t, b.dir, long, 250, 100_000)
	size, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.InDelta(t, 200_000+250*4096, size.Bytes, 40_000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Scan(ctx, id)
	require.ErrorIs(t, err, context.Canceled)
}

// long is a name that makes a path too long at twenty levels. Avoid very many: go
// test logs every path that is opened, and keeps the log.
var long = strings.Repeat("d", 200)

// deep creates n folders inside each other, too long for any path, with a file in
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
	require.NoError(t, b.Delete(t.Context(), id, "x", nil))
	require.Equal(t, before, descriptors(t))
	require.Empty(t, b.names(t))
}

// TestMeasureEndsEarly checks that a walk stops at its limit.
func TestMeasureEndsEarly(t *testing.T) {
	b, dir := newBox(t, options()), t.TempDir()
	for i := range 100 {
		require.NoError(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755))
	}
	use, err := b.Measure(t.Context(), dir, 0)
	require.NoError(t, err)
	require.EqualValues(t, 101, use.Files)
	use, err = b.Measure(t.Context(), dir, 10*4096)
	require.NoError(t, err)
	require.True(t, use.Exceeds(10*4096))
	require.Less(t, use.Files, int64(20))
}

// TestScanOfDeepTree: a volume whose folders are nested too deeply counts as over its limit,
// and again as measured without them.
func TestScanOfDeepTree(t *testing.T) {
	b := newBox(t, options())
	b.SetLimit(id, 4<<20, v1.Usage{})
	require.NoError(t, os.MkdirAll(filepath.Join(b.dir, strings.Repeat("d/", 300)), 0o755))
	use, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.True(t, use.Exceeds(4<<20))
	require.Equal(t, use, b.Used(id))
	require.Equal(t, v1.ReasonTooDeep, b.Unmeasured(id))
	use, err = b.Measure(t.Context(), b.dir, 4<<20)
	require.NoError(t, err)
	require.True(t, use.Exceeds(4<<20))
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "d")))
	use, err = b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.False(t, use.Exceeds(4<<20))
	require.Empty(t, b.Unmeasured(id))
}

// TestScanOfUnreadableFolder measures with the rights of a user who may not read a folder:
// the rest is measured, and the volume counts as over its limit.
func TestScanOfUnreadableFolder(t *testing.T) {
	b := newBox(t, options())
	for dir, n := b.dir, 0; n < 4; dir, n = filepath.Dir(dir), n+1 { // up to that of the test
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	closed := filepath.Join(b.dir, "closed")
	require.NoError(t, os.Mkdir(closed, 0o000))
	b.put(t, "file", strings.Repeat("x", 1<<20))
	goruntime.LockOSThread() // the rights are those of the thread
	defer goruntime.UnlockOSThread()
	scan := func() (v1.Usage, error) {
		if os.Geteuid() == 0 {
			require.NoError(t, unix.Setfsuid(65534))
			defer func() { require.NoError(t, unix.Setfsuid(0)) }()
		}
		return b.Scan(t.Context(), id)
	}
	use, err := scan()
	require.NoError(t, err)
	require.Equal(t, int64(3), use.Files)
	require.InDelta(t, 1<<20, use.Bytes, 64<<10, "without a limit it is what was counted")
	b.SetLimit(id, 16<<20, v1.Usage{})
	use, err = scan()
	require.NoError(t, err)
	require.True(t, use.Exceeds(16<<20))
	require.Equal(t, v1.ReasonUnreadable, b.Unmeasured(id))
	require.NoError(t, os.Chmod(closed, 0o755))
	use, err = scan()
	require.NoError(t, err)
	require.False(t, use.Exceeds(16<<20))
}

// deepening is a context that adds a folder below the deepest one at each step of a walk.
type deepening struct {
	context.Context
	t    *testing.T
	path string
	made int
}

func (d *deepening) Err() error {
	if d.made++; d.made < 500 {
		d.path += "/d"
		require.NoError(d.t, os.Mkdir(d.path, 0o700))
	}
	return nil
}

// TestScanOfGrowingTreeEnds: the walk of a tree that grows ahead of it ends, and the volume
// counts as over its limit.
func TestScanOfGrowingTreeEnds(t *testing.T) {
	opt := options()
	opt.Limits.ScanSteps = 100
	b := newBox(t, opt)
	b.SetLimit(id, 1<<30, v1.Usage{})
	grows := &deepening{t.Context(), t, filepath.Join(b.dir, "d"), 0}
	require.NoError(t, os.Mkdir(grows.path, 0o700))
	use, err := b.Scan(grows, id)
	require.NoError(t, err)
	require.Less(t, grows.made, 130, "it goes on")
	require.Equal(t, int64(1<<30+1), use.Bytes)
	require.Equal(t, use, b.Used(id))
	b.SetLimit(id, 0, v1.Usage{})
	use, err = b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.Less(t, use.Bytes, int64(1<<30), "without a limit it is what was counted")
}

// TestNamesOfHardLinksCount: a volume with a limit may have a bounded number of names for each of its files:
// a walk takes time for each.
func TestNamesOfHardLinksCount(t *testing.T) {
	b := newBox(t, options())
	b.SetLimit(id, 64<<20, v1.Usage{}) // 16 Ki files
	var first string
	link := func(from, to int) {
		for i := from; i <= to; i++ {
			if i%50_000 == 1 { // a file has 65,000 links at most
				first = filepath.Join(b.dir, strconv.Itoa(i))
				require.NoError(t, os.WriteFile(first, nil, 0o600))
			}
			require.NoError(t, os.Link(first, filepath.Join(b.dir, "l"+strconv.Itoa(i))))
		}
	}
	link(1, 60_000)
	use, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.False(t, use.Exceeds(64<<20))
	link(60_001, 66_000)
	use, err = b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.True(t, use.Exceeds(64<<20))
	require.Equal(t, v1.ReasonTooManyNames, b.Unmeasured(id))
}
