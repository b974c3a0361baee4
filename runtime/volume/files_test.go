package volume_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

const id = "11111111-2222-3333-4444-555555555555"

// box is one volume with its directory, and a directory outside it.
type box struct {
	*volume.Manager
	volume.Files
	dir, outside string
}

func newBox(t testing.TB, opt volume.Options) box {
	t.Helper()
	return newBoxIn(t, t.TempDir(), opt)
}

func newBoxIn(t testing.TB, top string, opt volume.Options) box {
	t.Helper()
	m, err := volume.New(filepath.Join(top, "volumes"), opt)
	require.NoError(t, err)
	require.NoError(t, m.Ensure(id))
	b := box{m, m.Files(), m.Path(id), filepath.Join(top, "outside")}
	require.NoError(t, os.MkdirAll(filepath.Join(b.outside, "folder"), 0o755))
	for _, name := range []string{"secret", "folder/secret"} {
		require.NoError(t, os.WriteFile(filepath.Join(b.outside, name), []byte("secret"), 0o600))
	}
	return b
}

// options use the daemon's own user.
func options() volume.Options { return volume.Options{UID: -1, GID: -1} }

// put creates a file without the manager, as a tenant does.
func (b box) put(t testing.TB, name, content string) {
	t.Helper()
	p := filepath.Join(b.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(t, os.WriteFile(p, []byte(content), 0o644))
}

func (b box) get(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	require.NoError(t, err)
	return string(data)
}

// code returns the code of an API error, or the error's text.
func code(err error) string {
	var e *v1.Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	if err != nil {
		return "other: " + err.Error()
	}
	return ""
}

// names returns all entries of the volume, including hidden ones.
func (b box) names(t testing.TB) []string {
	t.Helper()
	var list []string
	require.NoError(t, filepath.WalkDir(b.dir, func(p string, d fs.DirEntry, err error) error {
		if p != b.dir && err == nil {
			list = append(list, strings.TrimPrefix(p, b.dir+"/"))
		}
		return err
	}))
	return list
}

func TestDirectory(t *testing.T) {
	m, err := volume.New(filepath.Join(t.TempDir(), "a", "volumes"), options())
	require.NoError(t, err)
	require.ErrorIs(t, m.Check(id), v1.ErrDirectoryMissing)
	_, err = m.Files().List(t.Context(), id, ".")
	require.ErrorIs(t, err, v1.ErrDirectoryMissing)
	require.NoError(t, m.Ensure(id))
	require.NoError(t, m.Ensure(id), "again")
	require.NoError(t, m.Check(id))
	info, err := os.Stat(m.Path(id))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())

	for name, put := range map[string]func(p string) error{
		"link":   func(p string) error { return os.Symlink(t.TempDir(), p) },
		"file":   func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"inside": func(p string) error { return os.Symlink(".", p) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(m.Path(id)))
			require.NoError(t, put(m.Path(id)))
			require.ErrorIs(t, m.Check(id), v1.ErrNotADirectory)
			require.ErrorIs(t, m.Ensure(id), v1.ErrNotADirectory)
			require.ErrorIs(t, m.Files().Write(t.Context(), id, "x", strings.NewReader("x")), v1.ErrNotADirectory)
		})
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", ".removing-x", "a\x00"} {
		require.ErrorIs(t, m.Check(bad), v1.ErrVolumeNotFound, bad)
		require.ErrorIs(t, m.Ensure(bad), v1.ErrVolumeNotFound, bad)
		require.ErrorIs(t, m.Remove(t.Context(), bad), v1.ErrVolumeNotFound, bad)
	}
}

func TestWrite(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	require.NoError(t, b.Write(ctx, id, "a/b/c.txt", strings.NewReader("one")))
	require.NoError(t, b.Write(ctx, id, "./a//b/c.txt", strings.NewReader("two")))
	require.Equal(t, "two", b.get(t, "a/b/c.txt"))
	info, err := os.Stat(filepath.Join(b.dir, "a/b/c.txt"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode())
	info, err = os.Stat(filepath.Join(b.dir, "a/b"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode().Perm())

	require.Equal(t, "file_exists", code(b.Write(ctx, id, "a/b", strings.NewReader("x"))))
	err = b.Write(ctx, id, "a/b/c.txt/d", strings.NewReader("x"))
	require.EqualError(t, err, "File already exists at path: a/b/c.txt")
	require.Equal(t, []string{"a", "a/b", "a/b/c.txt"}, b.names(t), "nothing temporary is left")
}

func TestWriteThroughInnerLink(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "real/config", "old")
	require.NoError(t, os.Symlink("real/config", filepath.Join(b.dir, "link")))
	require.NoError(t, os.Symlink("../link", filepath.Join(b.dir, "real/chain")))
	require.NoError(t, b.Write(t.Context(), id, "real/chain", strings.NewReader("new")))
	require.Equal(t, "new", b.get(t, "real/config"))
	target, err := os.Readlink(filepath.Join(b.dir, "link"))
	require.NoError(t, err)
	require.Equal(t, "real/config", target)
}

// truncate is a client that goes away in the middle.
type cut struct{ n int }

func (c *cut) Read(p []byte) (int, error) {
	if c.n -= len(p); c.n < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

func TestFailedWriteKeepsContent(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "f", "old")
	require.ErrorIs(t, b.Write(t.Context(), id, "f", &cut{n: 3 << 20}), io.ErrUnexpectedEOF)
	require.Equal(t, "old", b.get(t, "f"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Write(ctx, id, "f", strings.NewReader("new")), context.Canceled)
	require.Equal(t, []string{"f"}, b.names(t))
	require.Equal(t, "old", b.get(t, "f"))
}

func TestList(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "b.txt", "12345")
	b.put(t, "a/inner", "")
	b.put(t, "Z/inner", "")
	require.NoError(t, os.Symlink("a", filepath.Join(b.dir, "to-a")))
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, ".berth-tmp-"+strings.Repeat("0", 32)), 0o700))
	list, err := b.List(t.Context(), id, ".")
	require.NoError(t, err)
	var seen []string
	for _, e := range list {
		require.NotZero(t, e.ModifiedAt)
		seen = append(seen, e.Type+" "+e.Name+" "+e.Mode)
	}
	want := []string{"directory Z 0755", "directory a 0755", "file b.txt 0644", "file to-a 0777"}
	require.Empty(t, cmp.Diff(want, seen))
	require.Equal(t, int64(5), list[2].Size)
	require.Zero(t, list[0].Size)
	require.True(t, list[3].Symlink)

	through, err := b.List(t.Context(), id, "to-a")
	require.NoError(t, err)
	require.Len(t, through, 1)
	empty, err := b.List(t.Context(), id, "a/")
	require.NoError(t, err)
	require.NotNil(t, empty)
	for _, p := range []string{"none", "b.txt", "b.txt/x"} {
		_, err = b.List(t.Context(), id, p)
		require.EqualError(t, err, "Path not found: "+p)
	}
}

func TestMkdir(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", "")
	require.NoError(t, b.Mkdir(t.Context(), id, "x/y/z"))
	require.NoError(t, b.Mkdir(t.Context(), id, "x/y/z/"), "again")
	require.NoError(t, b.Mkdir(t.Context(), id, "."))
	require.EqualError(t, b.Mkdir(t.Context(), id, "file"), "File already exists at path: file")
	require.EqualError(t, b.Mkdir(t.Context(), id, "file/x"), "File already exists at path: file")
}

func TestRenameAndDelete(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.put(t, "a/one", "1")
	b.put(t, "two", "2")
	require.NoError(t, b.Rename(ctx, id, "a", "new/deep/a"))
	require.Equal(t, "1", b.get(t, "new/deep/a/one"))
	require.EqualError(t, b.Rename(ctx, id, "two", "new"), "File already exists at path: new")
	require.EqualError(t, b.Rename(ctx, id, "two", "two"), "File already exists at path: two")
	require.EqualError(t, b.Rename(ctx, id, "none", "x"), "Path not found: none")
	require.Equal(t, "invalid_request", code(b.Rename(ctx, id, "new", "new/deep/x")))
	require.Equal(t, "invalid_path", code(b.Rename(ctx, id, ".", "x")))
	require.Equal(t, "invalid_path", code(b.Rename(ctx, id, "new", ".")))

	require.Equal(t, "invalid_path", code(b.Delete(ctx, id, ".")))
	require.Equal(t, "invalid_path", code(b.Delete(ctx, id, "./")))
	require.EqualError(t, b.Delete(ctx, id, "none"), "Path not found: none")
	require.NoError(t, b.Delete(ctx, id, "new"))
	require.NoError(t, b.Delete(ctx, id, "two"))
	require.Empty(t, b.names(t))
}

func TestDeleteKeepsLinkTarget(t *testing.T) {
	b := newBox(t, options())
	require.NoError(t, os.Symlink(b.outside, filepath.Join(b.dir, "out")))
	require.NoError(t, b.Rename(t.Context(), id, "out", "moved"))
	require.NoError(t, b.Delete(t.Context(), id, "moved"))
	require.FileExists(t, filepath.Join(b.outside, "folder/secret"))
	require.Empty(t, b.names(t))
}

func TestChmod(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "f", "")
	require.NoError(t, b.Chmod(t.Context(), id, "f", 0o750))
	info, err := os.Stat(filepath.Join(b.dir, "f"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o750), info.Mode())
	for _, bad := range []fs.FileMode{0o1777, 0o4755, fs.ModeSetuid | 0o755, 1 << 20} {
		require.Equal(t, "invalid_request", code(b.Chmod(t.Context(), id, "f", bad)))
	}
	require.EqualError(t, b.Chmod(t.Context(), id, "g", 0o600), "Path not found: g")
}

func TestSearch(t *testing.T) {
	b := newBox(t, volume.Options{UID: -1, GID: -1, Limits: volume.Limits{SearchResults: 3}})
	for _, name := range []string{"a/Latest.log", "a/b/latest.log.gz", "c/other", "logs/x"} {
		b.put(t, name, "12")
	}
	found := func(p, query string) []v1.FoundFile {
		list, err := b.Search(t.Context(), id, p, query)
		require.NoError(t, err)
		return list.Files
	}
	require.Equal(t, []v1.FoundFile{{Path: "a/Latest.log", Type: "file", Size: 2}, {Path: "a/b/latest.log.gz", Type: "file", Size: 2}}, found(".", "LATEST"))
	require.Equal(t, []v1.FoundFile{{Path: "a/Latest.log", Type: "file", Size: 2}}, found("a", "*.log"))
	require.Equal(t, []v1.FoundFile{{Path: "a/b/latest.log.gz", Type: "file", Size: 2}}, found("a/b", "log"))
	require.Equal(t, []v1.FoundFile{{Path: "logs", Type: "directory", Size: 0}}, found(".", "logs"))
	require.Len(t, found(".", "*"), 3, "bounded")
	require.Empty(t, found(".", "nothing"))
	_, err := b.Search(t.Context(), id, ".", "")
	require.Equal(t, "invalid_request", code(err))
	_, err = b.Search(t.Context(), id, "none", "x")
	require.EqualError(t, err, "Path not found: none")
}

func TestCopy(t *testing.T) {
	b := newBox(t, options())
	ctx := t.Context()
	b.put(t, "a/sub/one", "1")
	b.put(t, "two", "2")
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "two"), 0o4751|fs.ModeSetuid))
	require.NoError(t, os.Symlink("sub/one", filepath.Join(b.dir, "a/in")))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(b.dir, "a/out")))
	require.NoError(t, b.Copy(ctx, id, "a", "deep/copy"))
	require.NoError(t, b.Copy(ctx, id, "two", "deep/copy/two"))
	require.NoError(t, b.Copy(ctx, id, "a/in", "three"))
	require.Equal(t, "1", b.get(t, "deep/copy/sub/one"))
	require.Equal(t, "1", b.get(t, "three"), "a link that is named is followed")
	target, err := os.Readlink(filepath.Join(b.dir, "deep/copy/in"))
	require.NoError(t, err)
	require.Equal(t, "sub/one", target)
	require.NoFileExists(t, filepath.Join(b.dir, "deep/copy/out"))
	info, err := os.Stat(filepath.Join(b.dir, "deep/copy/two"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o751), info.Mode(), "set-uid is gone")

	require.EqualError(t, b.Copy(ctx, id, "none", "x"), "Path not found: none")
	require.EqualError(t, b.Copy(ctx, id, "a", "two"), "File already exists at path: two")
	require.EqualError(t, b.Copy(ctx, id, "a", "a"), "File already exists at path: a")
	for _, dst := range []string{"a/x", "a/sub/x/y"} {
		require.Equal(t, "invalid_request", code(b.Copy(ctx, id, "a", dst)))
	}
	require.Equal(t, "invalid_request", code(b.Copy(ctx, id, ".", "x")))
}

func TestCopyThroughLinkToParent(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "a/f", "1")
	require.NoError(t, os.Symlink("..", filepath.Join(b.dir, "a/up")))
	require.NoError(t, b.Copy(t.Context(), id, "a/up/a", "a/copy"))
	require.Equal(t, "1", b.get(t, "a/copy/f"))
	_, err := os.Lstat(filepath.Join(b.dir, "a/copy/copy"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
