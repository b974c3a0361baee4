package volume_test

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/pathtest"
	"berth/runtime/volume"
)

func TestRoundTrip(t *testing.T) {
	for _, format := range v1.Formats() {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, options())
			src := filepath.Join(b.dir, "src")
			require.NoError(t, os.Mkdir(src, 0o755))
			plant(t, src, treeSize())
			want := tree(t, src, true)

			a, err := b.Compress(t.Context(), id, v1.Compression{Format: format, Output: "out", Folder: "src"})
			require.NoError(t, err)
			require.Equal(t, "src/out."+format, a.Path)
			require.Zero(t, a.Skipped)
			info, err := os.Stat(filepath.Join(b.dir, a.Path))
			require.NoError(t, err)
			require.Equal(t, info.Size(), a.Size)
			require.Equal(t, fs.FileMode(0o644), info.Mode())

			if format != "tar.bz2" {
				sameStream(t, b, format, want)
			}
			require.NoError(t, b.Decompress(t.Context(), id, a.Path, "new/dst"))
			require.Empty(t, cmp.Diff(want, tree(t, filepath.Join(b.dir, "new/dst"), true)))
			sparseAgain(t, filepath.Join(b.dir, "new/dst/sparse"))

			theirs := t.TempDir()
			extractByTool(t, format, filepath.Join(b.dir, a.Path), theirs)
			require.Empty(t, cmp.Diff(want, tree(t, theirs, true)))
		})
	}
}

// sameStream checks that the archive of the folder src that is sent extracts to the same tree while it arrives.
func sameStream(t *testing.T, b box, format string, want map[string]string) {
	t.Helper()
	stream, err := b.Archive(t.Context(), id, v1.Tree{Folder: "src", Format: format, Ignore: []string{"/out.*"}})
	require.NoError(t, err)
	defer stream.Close()
	r, w := io.Pipe()
	go func() { _, err := stream.WriteTo(w); w.CloseWithError(err) }()
	_, err = b.Extract(t.Context(), id, r, v1.Decompression{Destination: "streamed", Format: format})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, tree(t, filepath.Join(b.dir, "streamed"), true)))
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "streamed")))
}

// TestZerosRoundTrip extracts a highly compressible archive that berth created.
func TestZerosRoundTrip(t *testing.T) {
	for _, format := range v1.Formats() {
		b := newBox(t, options())
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, "zeros"), nil, 0o644))
		require.NoError(t, os.Truncate(filepath.Join(b.dir, "zeros"), 200<<20))
		a, err := b.Compress(t.Context(), id, v1.Compression{Format: format, Output: "a"})
		require.NoError(t, err)
		require.NoError(t, b.Decompress(t.Context(), id, a.Path, "out"), format)
		info, err := os.Stat(filepath.Join(b.dir, "out/zeros"))
		require.NoError(t, err)
		require.Equal(t, int64(200<<20), info.Size(), format)
	}
}

func extractByTool(t testing.TB, format, archive, dir string) {
	t.Helper()
	switch format {
	case "zip":
		run(t, dir, "unzip", "-q^", archive)
	case "tar.bz2":
		run(t, dir, "bzip2", "-t", archive)
		run(t, dir, "tar", "-xpjf", archive)
	case "tar.gz":
		run(t, dir, "gzip", "-t", archive)
		run(t, dir, "tar", "-xpzf", archive)
	default:
		run(t, dir, "tar", "-xpf", archive)
	}
}

func TestSkippedLinks(t *testing.T) {
	for _, format := range v1.Formats() {
		b := newBox(t, options())
		pathtest.Plant(t, b.dir)
		require.NoError(t, os.Symlink("dir/file", filepath.Join(b.dir, "in")))
		require.NoError(t, syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o666))
		a, err := b.Compress(t.Context(), id, v1.Compression{Format: format, Output: "a"})
		require.NoError(t, err)
		require.Positive(t, a.Skipped)
		require.NoError(t, b.Decompress(t.Context(), id, a.Path, "out"), "berth extracts the archives that it creates")
		require.Equal(t, "mine", b.get(t, "out/in"))
		list, err := b.List(t.Context(), id, "out")
		require.NoError(t, err)
		for _, e := range list {
			require.NotContains(t, []string{"a." + format, "abs-file", "rel-folder", "fifo"}, e.Name)
		}
	}
}

// TestCompressManyPaths names as many paths as fit in a request. Comparing each pair
// would take half an hour; the request must be refused in seconds.
func TestCompressManyPaths(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "a/b/c", "x")
	b.put(t, "ab", "x")
	paths := []string{"ab", "a/b/c", "a/b", "./a/b", "a/b/c"}
	for i := range 200_000 {
		paths = append(paths, fmt.Sprintf("%05x", i))
	}
	done := make(chan error, 1)
	go func() {
		_, err := b.Compress(t.Context(), id, v1.Compression{Output: "a", Paths: paths})
		done <- err
	}()
	select {
	case err := <-done:
		require.EqualError(t, err, "Path not found: 00000")
	case <-time.After(time.Minute):
		t.Fatal("it takes too long")
	}
	_, err := b.Compress(t.Context(), id, v1.Compression{Output: "few", Format: "tar", Paths: paths[:5]})
	require.NoError(t, err)
	var names []string
	r := tar.NewReader(strings.NewReader(b.get(t, "few.tar")))
	for h, err := r.Next(); err == nil; h, err = r.Next() {
		names = append(names, h.Name)
	}
	require.Equal(t, []string{"a/b/", "a/b/c", "ab"}, names)
}

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
	require.Equal(t, "size_limit_exceeded", code(box{Manager: reopen(t, b, less)}.Decompress(ctx, id, a.Path, "out")))
	require.Equal(t, before, tree(t, b.dir, true), "it extracts nothing")
	require.NoError(t, b.Decompress(ctx, id, a.Path, "out"), "the bound is the same both ways")
	require.NoError(t, b.Delete(ctx, id, "out", nil))
	require.NoError(t, b.Delete(ctx, id, a.Path, nil))
	for i := range 60 {
		require.NoError(t, os.Link(filepath.Join(b.dir, fmt.Sprint("some/", long, i)), filepath.Join(b.dir, fmt.Sprint("some/more", long, i))))
	}
	before = tree(t, b.dir, true)
	_, err = b.Compress(ctx, id, v1.Compression{Output: "a", Format: "zip"})
	require.Equal(t, "size_limit_exceeded", code(err))
	require.Equal(t, before, tree(t, b.dir, true), "it leaves nothing")

	opt.Limits.NameBytes = 5 << 10 // fewer than all of the hard links are remembered
	b = box{reopen(t, b, opt), b.dir, b.outside}
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
	require.Positive(t, again, "some were archived twice")
}
