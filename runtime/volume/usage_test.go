package volume_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

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

// TestUnlinkedFilesOnImageCount checks that deleted files count while they are open.
func TestUnlinkedFilesOnImageCount(t *testing.T) {
	b, _ := newHardBox(t)
	before, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	f, err := os.Create(filepath.Join(b.dir, "held"))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Write(make([]byte, 4<<20))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, os.Remove(f.Name()))
	use, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.GreaterOrEqual(t, use.Bytes, before.Bytes+4<<20)
	require.NoError(t, f.Close())
	use, err = b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.Less(t, use.Bytes, before.Bytes+1<<20)
}
