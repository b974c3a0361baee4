package volume_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestCopyKeepsTheTree(t *testing.T) {
	b := newBox(t, options())
	src := filepath.Join(b.dir, "src")
	require.NoError(t, os.Mkdir(src, 0o755))
	plant(t, src, treeSize())
	require.NoError(t, b.Copy(t.Context(), id, "src", "dst"))
	require.Empty(t, cmp.Diff(tree(t, src, true), tree(t, filepath.Join(b.dir, "dst"), true)))
	sparseAgain(t, filepath.Join(b.dir, "dst/sparse"))
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
