package volume_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestOwners: a new entry has the owner of its folder, and a replaced file keeps its own. The daemon
// is root and the server is not.
func TestOwners(t *testing.T) {
	const server, other = 1000, 1001
	operations := map[string]struct {
		do    func(ctx context.Context, b box) error
		owned []string // by the server
	}{
		"write":      {func(ctx context.Context, b box) error { return b.Write(ctx, id, "srv/new", content(9)) }, []string{"srv/new"}},
		"parents":    {func(ctx context.Context, b box) error { return b.Write(ctx, id, "srv/a/b/new", content(9)) }, []string{"srv/a", "srv/a/b", "srv/a/b/new"}},
		"mkdir":      {func(ctx context.Context, b box) error { return b.Mkdir(ctx, id, "srv/a/b") }, []string{"srv/a", "srv/a/b"}},
		"copy":       {func(ctx context.Context, b box) error { return b.Copy(ctx, id, "dir", "srv/dir") }, []string{"srv/dir", "srv/dir/f", "srv/dir/link"}},
		"compress":   {func(ctx context.Context, b box) error { return compressTo(ctx, b, "srv/made") }, []string{"srv/made.tar"}},
		"decompress": {func(ctx context.Context, b box) error { return b.Decompress(ctx, id, "a.tar", "srv/x/y") }, []string{"srv/x", "srv/x/y", "srv/x/y/dir", "srv/x/y/dir/f", "srv/x/y/dir/link"}},
		"merge":      {func(ctx context.Context, b box) error { return b.Decompress(ctx, id, "srv.tar", ".") }, []string{"srv/added", "srv/replaced"}},
		"config file": {func(ctx context.Context, b box) error {
			return b.Configure(ctx, id, []v1.ConfigFile{{Path: "srv/c/server.properties", Format: "properties", Set: map[string]string{"a": "b"}}}, nil)[0]
		}, []string{"srv/c", "srv/c/server.properties"}},
		"in place":       {func(ctx context.Context, b box) error { return createInPlace(ctx, b, "srv/new") }, []string{"srv/new"}},
		"mkdir in place": {func(ctx context.Context, b box) error { return b.MakeFolder(ctx, id, "srv/new") }, []string{"srv/new"}},
		"symlink":        {func(ctx context.Context, b box) error { return b.Symlink(ctx, id, "file", "srv/link") }, []string{"srv/link"}},
	}
	for name, o := range operations {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, options())
			for _, f := range []string{"dir/f", "srv/added", "srv/replaced"} {
				b.put(t, f, "x")
			}
			require.NoError(t, os.Symlink("f", filepath.Join(b.dir, "dir/link")))
			run(t, b.dir, "tar", "-cf", "a.tar", "dir")
			run(t, b.dir, "tar", "-cf", "srv.tar", "srv")
			require.NoError(t, os.Remove(filepath.Join(b.dir, "srv/added")))
			require.NoError(t, os.Lchown(filepath.Join(b.dir, "srv"), server, server))
			require.NoError(t, o.do(t.Context(), b))
			for _, p := range o.owned {
				require.Equal(t, []uint32{server, server}, ownerOf(t, b, p), p)
			}
		})
	}
	t.Run("overwrite", func(t *testing.T) {
		b := newBox(t, options())
		b.put(t, "srv/f", "x")
		require.NoError(t, os.Symlink("srv/f", filepath.Join(b.dir, "link")))
		require.NoError(t, os.Lchown(filepath.Join(b.dir, "srv"), other, other))
		require.NoError(t, os.Lchown(filepath.Join(b.dir, "srv/f"), server, other))
		for _, p := range []string{"srv/f", "link"} {
			require.NoError(t, b.Write(t.Context(), id, p, strings.NewReader("new")))
			require.Equal(t, []uint32{server, other}, ownerOf(t, b, "srv/f"), p)
		}
	})
}

func compressTo(ctx context.Context, b box, output string) error {
	_, err := b.Compress(ctx, id, v1.Compression{Format: "tar", Output: output, Paths: []string{"dir"}})
	return err
}

func createInPlace(ctx context.Context, b box, p string) error {
	f, err := b.OpenFile(ctx, id, p, v1.OpenMode{Write: true, Create: true})
	if err != nil {
		return err
	}
	return f.Close()
}

func ownerOf(t *testing.T, b box, p string) []uint32 {
	t.Helper()
	info, err := os.Lstat(filepath.Join(b.dir, p))
	require.NoError(t, err)
	st := info.Sys().(*syscall.Stat_t)
	return []uint32{st.Uid, st.Gid}
}
