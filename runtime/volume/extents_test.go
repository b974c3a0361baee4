package volume_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

func sparseAgain(t testing.TB, p string) {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Stat(p, &st))
	require.Less(t, st.Blocks*512, int64(1<<20), "holes are holes again")
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
	for _, format := range v1.Formats() {
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
	require.Equal(t, "size_limit_exceeded", code(err), "together they have too many holes")
	require.Regexp(t, "leave out the sparse file in/(2|3|4|sparse)$", err.Error())

	f, err := os.Create(filepath.Join(b.dir, "allocated"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, 4<<20))
	small := options()
	small.Limits = volume.Limits{HoleBytes: 1 << 20}
	_, err = reopen(t, b, small).Compress(t.Context(), id, v1.Compression{Output: "allocated", Paths: []string{"allocated"}})
	require.NoError(t, err, "allocated bytes are no hole")
}
