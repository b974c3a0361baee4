package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
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

// TestDirectoryParts: an archive that is cut at any byte goes on there, also in a new process. The part of another one, or a damaged
// part, is not used.
func TestDirectoryParts(t *testing.T) {
	d := newTestDirectory(t)
	text := strings.Repeat("0123456789", 100)
	part := func(offset int64, content io.Reader) error {
		return NewDirectory(d.path).PutPart(t.Context(), Part{Key: "a", Offset: offset, Size: int64(len(text)),
			Checksum: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))}, content)
	}
	cut := func(from, to int) error {
		return part(int64(from), io.MultiReader(strings.NewReader(text[from:to]), iotest.ErrReader(io.ErrUnexpectedEOF)))
	}
	require.Zero(t, d.Stored("a"))
	require.ErrorIs(t, cut(0, 333), io.ErrUnexpectedEOF)
	require.EqualValues(t, 333, d.Stored("a"))
	require.ErrorIs(t, cut(334, 400), ErrNoPart)
	require.ErrorIs(t, cut(332, 400), ErrNoPart)
	require.NoError(t, part(333, strings.NewReader(text[333:500])), "a part that ends is stored")
	require.EqualValues(t, 500, d.Stored("a"))
	_, _, err := d.Open(t.Context(), "a", 0)
	require.ErrorIs(t, err, ErrNotFound)

	f, err := os.OpenFile(filepath.Join(d.path, partPrefix+"a"), os.O_WRONLY|os.O_APPEND, 0) // a kill before it was saved
	require.NoError(t, err)
	_, err = f.WriteString("not saved")
	require.NoError(t, errors.Join(err, f.Close()))
	require.EqualValues(t, 500, d.Stored("a"))
	require.NoError(t, part(500, strings.NewReader(text[500:])))
	got, _ := read(t, d, "a", 0)
	require.Equal(t, text, string(got))
	require.Equal(t, []string{"a"}, names(t, d))
	require.Zero(t, d.Stored("a"))

	require.NoError(t, d.Delete(t.Context(), "a"))
	for _, lie := range []string{text + "1", text[1:] + "0", text[:999] + "0"} {
		require.ErrorIs(t, part(0, strings.NewReader(lie)), ErrOther, lie)
		require.Empty(t, names(t, d))
	}
	for name, damage := range map[string]string{sumPrefix + "a": "x", partPrefix + "a": ""} {
		require.ErrorIs(t, cut(0, 100), io.ErrUnexpectedEOF)
		require.NoError(t, os.WriteFile(filepath.Join(d.path, name), []byte(damage), 0o600))
		require.Zero(t, d.Stored("a"), name)
	}
	require.ErrorIs(t, cut(0, 100), io.ErrUnexpectedEOF)
	require.NoError(t, d.Delete(t.Context(), "a"))
	require.Empty(t, names(t, d))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.PutPart(ended, Part{Key: "a", Size: 1}, strings.NewReader("1")), context.Canceled)
}
