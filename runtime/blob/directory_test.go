package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func newTestDirectory(t *testing.T) *Directory {
	t.Helper()
	return NewDirectory(filepath.Join(t.TempDir(), "a", "backups"))
}

// from returns a function for Put that writes what r returns.
func from(r io.Reader) func(ctx context.Context, w io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	}
}

// names returns the names of all files of a directory.
func names(t *testing.T, d *Directory) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(d.path)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// read returns an archive from offset on.
func read(t *testing.T, target Target, key string, offset int64) ([]byte, int64) {
	t.Helper()
	r, size, err := target.Open(t.Context(), key, offset)
	require.NoError(t, err)
	defer r.Close()
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	return got, size
}

func TestDirectoryKeepsOneFilePerArchive(t *testing.T) {
	d := newTestDirectory(t)
	want := bytes.Repeat([]byte("0123456789"), 1<<20)
	size, err := d.Put(t.Context(), "a.tar.zst", from(iotest.HalfReader(bytes.NewReader(want))))
	require.NoError(t, err)
	require.EqualValues(t, len(want), size)
	require.Equal(t, []string{"a.tar.zst"}, names(t, d))
	info, err := os.Stat(filepath.Join(d.path, "a.tar.zst"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	dir, err := os.Stat(d.path)
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|0o700, dir.Mode())

	for _, offset := range []int64{0, 7, 1 << 20, size - 1, size} {
		got, total := read(t, d, "a.tar.zst", offset)
		require.True(t, bytes.Equal(want[offset:], got), offset)
		require.Equal(t, size, total)
	}
	require.NoError(t, d.Abort(t.Context(), "a.tar.zst"))
	require.Equal(t, []string{"a.tar.zst"}, names(t, d), "a complete archive stays")
	require.NoError(t, d.Delete(t.Context(), "a.tar.zst"))
	require.Empty(t, names(t, d))
	_, _, err = d.Open(t.Context(), "a.tar.zst", 0)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestDirectoryWithoutArchive(t *testing.T) {
	d := newTestDirectory(t)
	for range 2 { // without the directory, then in it
		require.NoError(t, d.Delete(t.Context(), "a"))
		require.NoError(t, d.Abort(t.Context(), "a"))
		_, _, err := d.Open(t.Context(), "a", 0)
		require.ErrorIs(t, err, ErrNotFound)
		size, err := d.Put(t.Context(), "empty", from(strings.NewReader("")))
		require.NoError(t, err)
		require.Zero(t, size)
	}
}

func TestDirectoryFailures(t *testing.T) {
	broken := errors.New("broken")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	data := bytes.Repeat([]byte("x"), 1<<20)
	for name, c := range map[string]struct {
		ctx  context.Context
		r    io.Reader
		want error
	}{
		"the writer fails": {t.Context(), io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)), broken},
		"cancelled":        {cancelled, bytes.NewReader(data), context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestDirectory(t)
			_, err := d.Put(c.ctx, "a", from(c.r))
			require.ErrorIs(t, err, c.want)
			require.Empty(t, names(t, d))
		})
	}
}

// TestDirectoryIsUnwritable: the error names what cannot be written.
func TestDirectoryIsUnwritable(t *testing.T) {
	d := newTestDirectory(t)
	require.NoError(t, os.WriteFile(filepath.Dir(d.path), nil, 0o600)) // a file in its place
	_, err := d.Put(t.Context(), "a.tar.zst", from(strings.NewReader("content")))
	require.ErrorContains(t, err, "the directory of the backups cannot be written: ")

	require.NoError(t, os.Remove(filepath.Dir(d.path)))
	require.NoError(t, os.MkdirAll(filepath.Join(d.path, ".part-a.tar.zst", "in the way"), 0o700))
	_, err = d.Put(t.Context(), "a.tar.zst", from(strings.NewReader("content")))
	require.ErrorContains(t, err, "the directory of the backups cannot be written: ")
}

// TestDirectoryAfterCrash: a part that a killed process left is no archive.
func TestDirectoryAfterCrash(t *testing.T) {
	d := newTestDirectory(t)
	leave := func() {
		require.NoError(t, os.MkdirAll(d.path, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(d.path, partPrefix+"a"), []byte("half"), 0o600))
	}
	leave()
	_, _, err := d.Open(t.Context(), "a", 0)
	require.ErrorIs(t, err, ErrNotFound)
	for _, remove := range []func(context.Context, string) error{d.Abort, d.Delete} {
		leave()
		require.NoError(t, remove(t.Context(), "a"))
		require.Empty(t, names(t, d))
	}
	leave()
	_, err = d.Put(t.Context(), "a", from(strings.NewReader("x")))
	require.NoError(t, err)
	got, _ := read(t, d, "a", 0)
	require.Equal(t, "x", string(got))
	require.Equal(t, []string{"a"}, names(t, d))
}

func TestKeys(t *testing.T) {
	d := newTestDirectory(t)
	for _, key := range []string{"", ".a", "..", "a/b", "A", partPrefix + "a", strings.Repeat("a", 129), "a\n"} {
		_, err := d.Put(t.Context(), key, from(strings.NewReader("x")))
		require.ErrorContains(t, err, "is not a key", key)
		_, _, err = d.Open(t.Context(), key, 0)
		require.ErrorContains(t, err, "is not a key", key)
		require.ErrorContains(t, d.Delete(t.Context(), key), "is not a key", key)
		require.ErrorContains(t, d.Abort(t.Context(), key), "is not a key", key)
	}
	require.Empty(t, names(t, d))
}
