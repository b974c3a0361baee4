package volume_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

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

// globals returns a tar of n blocks that belong to no file.
func globals(t *testing.T, n int) []byte {
	var one, all bytes.Buffer
	w := tar.NewWriter(&one)
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}))
	require.NoError(t, w.Flush())
	for all.Len() < n*512 {
		all.Write(one.Bytes())
	}
	return all.Bytes()
}

// TestBombsOutsideFiles extracts archives whose bytes belong to no file: they follow
// the end of the tar, or are headers without an entry.
func TestBombsOutsideFiles(t *testing.T) {
	b := newBox(t, volume.Options{UID: -1, GID: -1, Limits: volume.Limits{Ratio: 100}})
	src := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(src, "globals"), globals(t, 150_000), 0o600))
	for name, feed := range map[string]string{"after the end": "head -c 70M /dev/zero", "headers of nothing": "cat globals"} {
		for _, tool := range []string{"gzip", "bzip2"} {
			run(t, src, "sh", "-c", feed+" | "+tool+" > "+filepath.Join(b.dir, "a"))
			require.EqualError(t, b.Decompress(t.Context(), id, "a", "out"), "Archive extracts to more than 100 times its size", name)
			require.Equal(t, []string{"a"}, b.names(t))
		}
	}
}

// TestExtractBombCancelled checks that an extraction notices its cancellation while
// it reads no more bytes of the archive.
func TestExtractBombCancelled(t *testing.T) {
	b := newBox(t, options())
	run(t, b.dir, "sh", "-c", "head -c 60M /dev/zero | bzip2 > a")
	ctx := &after{Context: t.Context()}
	ctx.n.Store(20)
	require.ErrorIs(t, b.Decompress(ctx, id, "a", "out"), context.Canceled)
	require.Equal(t, []string{"a"}, b.names(t))
}

// TestMergeMemoryIsBounded merges more files than the memory for their names allows,
// and checks that nothing changed.
func TestMergeMemoryIsBounded(t *testing.T) {
	opt := options()
	opt.Limits.NameBytes = 32 << 10
	b := newBox(t, opt)
	deep := strings.Repeat(strings.Repeat("d", 200)+"/", 12)
	files := func(n int) (parts []part) {
		for i := range n {
			parts = append(parts, file(fmt.Sprint(deep, i)))
		}
		return parts
	}
	b.put(t, "dest/"+deep+"10", "mine")
	b.put(t, "few", string(pack(t, "tar", files(50))))
	b.put(t, "many", string(pack(t, "tar", files(400))))
	before := b.names(t)
	require.Equal(t, "size_limit_exceeded", code(b.Decompress(t.Context(), id, "many", "dest")))
	require.Equal(t, before, b.names(t), "it leaves nothing")
	require.Equal(t, "mine", b.get(t, "dest/"+deep+"10"))
	require.NoError(t, b.Decompress(t.Context(), id, "few", "dest"))
	require.Equal(t, "hostile", b.get(t, "dest/"+deep+"10"))
	require.NoError(t, b.Decompress(t.Context(), id, "many", "new"), "a whole folder is one move")
}

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
	require.NoError(t, b.Delete(ctx, id, "f"))
	require.NoError(t, w.Close())
	require.NoError(t, <-ended)
	require.InDelta(t, measured.Bytes, b.Used(id).Bytes, 8<<10)
}

// TestRepeatedExtractKeepsUsage extracts the same archive several times and checks
// that the usage stays the same.
func TestRepeatedExtractKeepsUsage(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.put(t, "a.tar", string(pack(t, "tar", []part{file("x")})))
	require.NoError(t, b.Decompress(ctx, id, "a.tar", "."))
	measured, err := b.Scan(ctx, id)
	require.NoError(t, err)
	for range 50 {
		require.NoError(t, b.Decompress(ctx, id, "a.tar", "."))
	}
	require.InDelta(t, measured.Bytes, b.Used(id).Bytes, 4<<10)
}

// TestTemporaryNamesInArchives checks that they are refused: such files could be
// neither seen nor removed.
func TestTemporaryNamesInArchives(t *testing.T) {
	b := newBox(t, options())
	hidden := ".berth-tmp-" + strings.Repeat("0", 32)
	for _, p := range []part{file(hidden), file("./" + hidden + "/x"), folder(hidden + "/")} {
		b.put(t, "a", string(pack(t, "tar", []part{file("ok"), p})))
		require.ErrorIs(t, b.Decompress(t.Context(), id, "a", "."), v1.ErrInvalidPath)
		require.Equal(t, []string{"a"}, b.names(t))
		require.NoError(t, b.Decompress(t.Context(), id, "a", "elsewhere"), "below another folder it is a name like others")
		require.NoError(t, b.Delete(t.Context(), id, "elsewhere"))
	}
}

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
