package volume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// TestNameMemoryIsBounded checks that a tenant's file names take at most a fixed part
// of the daemon's memory.
func TestNameMemoryIsBounded(t *testing.T) {
	opt := options()
	opt.Limits = volume.Limits{NameBytes: 32 << 10, ZipDirectoryBytes: 32 << 10}
	b := newBox(t, opt)
	ctx := t.Context()
	long := strings.Repeat("n", 240)
	for i := range 60 { // 60 times about 500 bytes, and the names of their folder
		b.put(t, fmt.Sprint("some/", long, i), "x")
	}
	a, err := b.Compress(ctx, id, v1.Compression{Output: "fits", Format: "zip"})
	require.NoError(t, err)
	less := opt
	less.Limits.ZipDirectoryBytes = 16 << 10
	before := tree(t, b.dir, true)
	require.Equal(t, "size_limit_exceeded", code(reopen(t, b, less).Files().Decompress(ctx, id, a.Path, "out")))
	require.Equal(t, before, tree(t, b.dir, true), "it extracts nothing")
	require.NoError(t, b.Decompress(ctx, id, a.Path, "out"), "the bound is the same both ways")
	require.NoError(t, b.Delete(ctx, id, "out"))
	require.NoError(t, b.Delete(ctx, id, a.Path))
	for i := range 60 {
		require.NoError(t, os.Link(filepath.Join(b.dir, fmt.Sprint("some/", long, i)), filepath.Join(b.dir, fmt.Sprint("some/more", long, i))))
	}
	before = tree(t, b.dir, true)
	_, err = b.Compress(ctx, id, v1.Compression{Output: "a", Format: "zip"})
	require.Equal(t, "size_limit_exceeded", code(err))
	require.Equal(t, before, tree(t, b.dir, true), "it leaves nothing")

	opt.Limits.NameBytes = 5 << 10 // fewer than all of the hard links are remembered
	b = box{reopen(t, b, opt), b.Files, b.dir, b.outside}
	b.Files = b.Manager.Files()
	a, err = b.Compress(ctx, id, v1.Compression{Output: "a", Format: "tar"})
	require.NoError(t, err)
	require.NoError(t, b.Decompress(ctx, id, a.Path, "out"))
	require.Equal(t, tree(t, filepath.Join(b.dir, "some"), true), tree(t, filepath.Join(b.dir, "out/some"), true))

	again := 0
	for i := range 60 {
		info, err := os.Stat(filepath.Join(b.dir, fmt.Sprint("out/some/", long, i)))
		require.NoError(t, err)
		if info.Sys().(*syscall.Stat_t).Nlink == 1 {
			again++
		}
	}
	require.Less(t, again, 60, "some are links again")
	require.Positive(t, again, "some were forgotten")

	deep(t, b.dir, long, 10, 1)
	_, err = b.Scan(ctx, id)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, "deeper"), 0o755))
	deep(t, filepath.Join(b.dir, "deeper"), long, 60, 1)
	_, err = b.Scan(ctx, id)
	require.ErrorContains(t, err, "nested too deeply")
}

// reopen returns a manager of the same volumes with other options.
func reopen(t *testing.T, b box, opt volume.Options) *volume.Manager {
	t.Helper()
	m, err := volume.New(filepath.Dir(b.dir), opt)
	require.NoError(t, err)
	return m
}
