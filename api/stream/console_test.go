package stream_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
)

const server = v1.ServerConsole

func TestLinesThatCannotBeWrittenAreNotAdded(t *testing.T) {
	dir := t.TempDir()
	h := stream.New(dir, stream.Options{})
	l, err := h.Listen("mc")
	require.NoError(t, err)
	defer l.Close()
	path := filepath.Join(dir, "mc")
	require.NoError(t, os.WriteFile(path, nil, 0o600)) // a file in the directory's place
	begin(t, h, "c1")
	require.Error(t, h.Append("mc", server, lines(0, 2)))
	require.Error(t, h.Append("mc", server, lines(2, 4)))
	require.Zero(t, begin(t, h, "c1").Last, "its reader begins with them")
	require.NoError(t, os.Remove(path))
	write(t, h, lines(4, 5))
	require.Equal(t, lines(4, 5), since(t, h, time.Time{}))
	out, err := take(t.Context(), l)
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.Equal(t, "line 4\n", decode(t, out[0]).Data)
}

func TestRemoveEndsListenersAndFiles(t *testing.T) {
	dir := t.TempDir()
	h := stream.New(dir, stream.Options{})
	begin(t, h, "c1")
	write(t, h, lines(0, 1))
	l, err := h.Listen("mc")
	require.NoError(t, err)
	defer l.Close()
	all, err := h.Listen("")
	require.NoError(t, err)
	defer all.Close()
	write(t, h, lines(1, 2))
	require.Equal(t, "line 1\n", next(t, l)[0].Data)
	h.Event(event(7, "exit"))
	require.NoError(t, h.Remove("mc"))
	require.NoDirExists(t, filepath.Join(dir, "mc"))
	out, err := take(t.Context(), l)
	require.NoError(t, err)
	require.EqualValues(t, 7, decode(t, out[0]).Seq)
	_, err = take(t.Context(), l)
	require.ErrorIs(t, err, stream.ErrGone)
	require.Empty(t, since(t, h, time.Time{}))
	_, err = take(t.Context(), all)
	require.NoError(t, err)
	write(t, h, lines(5, 6)) // a new container of that name
	out, err = take(t.Context(), all)
	require.NoError(t, err)
	require.Equal(t, "line 5\n", decode(t, out[0]).Data)
}

func write(t *testing.T, h *stream.Hub, list []v1.Line) {
	t.Helper()
	require.NoError(t, h.Append("mc", server, parts(list...)))
}

// parts returns lines as they are appended: a long one in parts.
func parts(lines ...v1.Line) (list []v1.Line) {
	for _, l := range lines {
		for len(l.Data) > v1.MaxLine {
			list = append(list, v1.Line{Time: l.Time, Data: l.Data[:v1.MaxLine], Partial: true})
			l.Data = l.Data[v1.MaxLine:]
		}
		list = append(list, l)
	}
	return list
}

func since(t *testing.T, h *stream.Hub, from time.Time) []v1.Line {
	t.Helper()
	var list []v1.Line
	require.NoError(t, h.Since(t.Context(), "mc", server, from, func(l v1.Line) bool {
		l.Data = bytes.Clone(l.Data)
		list = append(list, l)
		return true
	}))
	return list
}

func begin(t *testing.T, h *stream.Hub, container string) v1.Resume {
	t.Helper()
	r, err := h.Begin("mc", server, container)
	require.NoError(t, err)
	return r
}
