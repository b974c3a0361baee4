package volume

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// opened returns what an open of a file for reading has found, or how it has failed.
func opened(t *testing.T, f *os.File, err error) (content string, failed bool) {
	t.Helper()
	if err != nil {
		return "", true
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return string(b), false
}

// TestOpenFileAsRoot: one system call opens and describes what os.Root does, and nothing outside.
func TestOpenFileAsRoot(t *testing.T) {
	m := newManager(t)
	require.NoError(t, m.Ensure("a"))
	dir := filepath.Join(m.base, "a")
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o644))
	relative, err := filepath.Rel(dir, outside)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "d/e"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "d/f"), []byte("content"), 0o644))
	for name, target := range map[string]string{
		"in": "d/f", "d/up": "../d/f", "folder": "d/e", "absolute": outside, "relative": relative, "top": "/", "parents": "..",
		"loop": "loop", "none": "d/none", "magic": "/proc/self/root", "own": dir,
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	s, err := m.roots.open("a", true)
	require.NoError(t, err)
	defer m.roots.release(s)
	require.NotNil(t, s.dir)
	for _, p := range []string{"d/f", "d/none", "in", "d/up", "folder/../f", "absolute", "relative", "top", "parents", "loop", "none",
		"magic", "own", "magic/etc/passwd", "top/etc/passwd", "own/d/f", "parents/a/d/f", "../a/d/f", "/etc/passwd", "d/../../a/d/f"} {
		f, err := s.openFile(p, unix.O_NONBLOCK, 0)
		g, err2 := s.OpenFile(p, unix.O_NONBLOCK, 0)
		content, failed := opened(t, f, err)
		want, wantFailed := opened(t, g, err2)
		require.Equal(t, wantFailed, failed, "%s: %v, and os.Root: %v", p, err, err2)
		require.Equal(t, want, content, p)
		require.NotEqual(t, "secret", content, p)
	}
	for _, p := range []string{"d/f", "in", "d/up", "folder", ".", "absolute", "relative", "top", "parents", "loop", "none", "magic"} {
		info, err := s.stat(p)
		want, err2 := s.Stat(p)
		require.Equal(t, err2 == nil, err == nil, "%s: %v, and os.Root: %v", p, err, err2)
		if err == nil {
			require.Equal(t, inodeOf(want), inodeOf(info), p)
			require.Equal(t, []any{want.Name(), want.Mode(), want.Size(), want.ModTime()}, []any{info.Name(), info.Mode(), info.Size(), info.ModTime()})
		}
	}
	f, err := s.openFile("d/new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, p := range []string{"d/new", "none", "absolute"} {
		_, err = s.openFile(p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		require.ErrorIs(t, err, fs.ErrExist, p)
	}
	_, err = s.openFile("relative/new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	require.Error(t, err)
}

// TestOpenFileWithoutOpenat2: kernels before 5.6 use os.Root.
func TestOpenFileWithoutOpenat2(t *testing.T) {
	m := newManager(t)
	require.NoError(t, m.Ensure("a"))
	s, err := m.roots.open("a", true)
	require.NoError(t, err)
	defer m.roots.release(s)
	s.dir.Close() // the call fails
	f, err := s.openFile("f", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	info, err := s.stat("f")
	require.NoError(t, err)
	require.Equal(t, "f", info.Name())
}
