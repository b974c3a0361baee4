package volume_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// streamed returns the names in the archive of a tree, and the error of writing it.
func streamed(ctx context.Context, t *testing.T, b box, a v1.Tree) (names []string, err error) {
	t.Helper()
	a.Format = "tar"
	stream, err := b.Archive(ctx, id, a)
	require.NoError(t, err)
	var buf bytes.Buffer
	n, err := stream.WriteTo(&buf)
	require.Equal(t, int64(buf.Len()), n)
	require.NoError(t, stream.Close())
	for r := tar.NewReader(&buf); err == nil; {
		h, end := r.Next()
		if errors.Is(end, io.EOF) {
			return names, nil
		}
		require.NoError(t, end)
		names = append(names, h.Name)
	}
	return nil, err
}

// TestArchiveStream: what an archive that is sent leaves out, and what ends it.
func TestArchiveStream(t *testing.T) {
	b := newBox(t, options())
	for _, p := range []string{"w/a.log", "w/keep.log", "w/logs/x", "w/sub/b.log", "w/sub/c", "other"} {
		b.put(t, p, p)
	}
	before, open := tree(t, b.dir, true), descriptors(t)
	names, err := streamed(t.Context(), t, b, v1.Tree{Folder: "w", Ignore: []string{"*.log", "!keep.log", "/logs/"}})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"keep.log", "sub/", "sub/c"}, names)
	names, err = streamed(v1.WithDenied(t.Context(), [][]string{{"w/sub/", "/other"}}), t, b, v1.Tree{Folder: "."})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"w/", "w/a.log", "w/keep.log", "w/logs/", "w/logs/x"}, names)
	names, err = streamed(v1.WithDenied(t.Context(), [][]string{{"w/sub/"}}), t, b, v1.Tree{Folder: "w/sub"})
	require.NoError(t, err)
	require.Empty(t, names)
	require.Equal(t, before, tree(t, b.dir, true), "nothing is written to the volume")
	require.Equal(t, open, descriptors(t))

	_, err = b.Archive(t.Context(), id, v1.Tree{Folder: "other", Format: "tar"})
	require.EqualError(t, err, "Path not found: other")
	few := options()
	few.Limits = volume.Limits{Entries: 3}
	_, err = streamed(t.Context(), t, box{reopen(t, b, few), b.dir, b.outside}, v1.Tree{Folder: ".", Ignore: []string{"*"}})
	require.NoError(t, err)
	_, err = streamed(t.Context(), t, box{reopen(t, b, few), b.dir, b.outside}, v1.Tree{Folder: "."})
	require.Equal(t, "size_limit_exceeded", code(err))
	b.put(t, "w/one more", "")
	_, err = streamed(t.Context(), t, box{reopen(t, b, few), b.dir, b.outside}, v1.Tree{Folder: "w", Ignore: []string{"*"}})
	require.Equal(t, "size_limit_exceeded", code(err), "ignored entries are counted as well")
}

// panicking is a writer that panics.
type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("broken") }

// TestArchiveStreamPanics: a panic while an answer is sent would end the daemon.
func TestArchiveStreamPanics(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "a", "x")
	stream, err := b.Archive(t.Context(), id, v1.Tree{Folder: ".", Format: "tar"})
	require.NoError(t, err)
	_, err = stream.WriteTo(panicking{})
	require.ErrorContains(t, err, "panic: broken")
	require.NoError(t, stream.Close())
}
