package volume_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// deniedBox is a volume with files that patterns of denied_files select, and ways to them.
func deniedBox(t *testing.T) box {
	t.Helper()
	b := newBox(t, options())
	for _, p := range []string{"server.jar", "config/secret.yml", "config/plain.yml", "keys/a", "plain.txt", "other/secret.yml", "free/x"} {
		b.put(t, p, "old "+p)
	}
	for name, target := range map[string]string{"to-jar": "server.jar", "to-config": "config", "to-keys": "keys", "to-new": "keys/new", "private.lnk": "plain.txt"} {
		require.NoError(t, os.Symlink(target, filepath.Join(b.dir, name)))
	}
	for name, paths := range map[string][]string{"jar": {"server.jar"}, "secret": {"config"}} {
		_, err := b.Compress(t.Context(), id, v1.Compression{Format: "zip", Output: name, Paths: paths})
		require.NoError(t, err)
	}
	return b
}

var deniedPatterns = [][]string{{"/server.jar", "config/secret.yml", "later/secret.yml"}, {"keys/", "*.lnk", "none.zip"}}

// TestDeniedFiles: an operation of a limited token neither reads nor changes what is denied, whatever way
// leads there.
func TestDeniedFiles(t *testing.T) {
	type door func(ctx context.Context, b box) error
	open := func(p string) door {
		return func(ctx context.Context, b box) error { _, err := b.Open(ctx, id, p); return err }
	}
	write := func(p string) door {
		return func(ctx context.Context, b box) error { return b.Write(ctx, id, p, strings.NewReader("new")) }
	}
	rename := func(from, to string) door {
		return func(ctx context.Context, b box) error { return b.Rename(ctx, id, from, to) }
	}
	replace := func(from, to string) door {
		return func(ctx context.Context, b box) error { return b.MoveOver(ctx, id, from, to) }
	}
	duplicate := func(from, to string) door {
		return func(ctx context.Context, b box) error { return b.Copy(ctx, id, from, to) }
	}
	extract := func(archive, to string) door {
		return func(ctx context.Context, b box) error { return b.Decompress(ctx, id, archive, to) }
	}
	arrive := func(archive, to string) door {
		return func(ctx context.Context, b box) error {
			_, err := b.Extract(ctx, id, strings.NewReader(b.get(t, archive)), v1.Decompression{Destination: to})
			return err
		}
	}
	handle := func(p string, mode v1.OpenMode) door {
		return func(ctx context.Context, b box) error { _, err := b.OpenFile(ctx, id, p, mode); return err }
	}
	size := int64(0)
	doors := map[string]door{
		"open": open("server.jar"), "open a path that is not clean": open("./config//secret.yml"), "open a link": open("to-jar"),
		"open through a folder's link": open("to-config/secret.yml"), "open below": open("to-keys/a"),
		"write": write("server.jar"), "write through a link": write("to-jar"), "write a new file": write("keys/new"),
		"write through a folder's link": write("to-config/secret.yml"), "write to a dangling link": write("to-new"),
		"write with parents": write("keys/deep/er/new"), "write to a new place": write("later/secret.yml"),
		"mkdir":  func(ctx context.Context, b box) error { return b.Mkdir(ctx, id, "to-keys/x") },
		"rename": rename("server.jar", "x"), "rename to": rename("plain.txt", "keys/x"), "rename the parent": rename("config", "x"),
		"rename a folder so that a file is denied": rename("other", "later"), "rename over": rename("plain.txt", "server.jar"),
		"copy": duplicate("server.jar", "x"), "copy the parent": duplicate("config", "x"), "copy through a link": duplicate("to-jar", "x"),
		"copy to": duplicate("plain.txt", "to-keys/x"), "copy a folder so that a file is denied": duplicate("other", "later"),
		"delete":            func(ctx context.Context, b box) error { return b.Delete(ctx, id, "server.jar", nil) },
		"delete the parent": func(ctx context.Context, b box) error { return b.Delete(ctx, id, "config", nil) },
		"chmod":             func(ctx context.Context, b box) error { return b.Chmod(ctx, id, "to-config/secret.yml", 0o777) },
		"compress to": func(ctx context.Context, b box) error {
			_, err := b.Compress(ctx, id, v1.Compression{Format: "zip", Output: "keys/x", Paths: []string{"plain.txt"}})
			return err
		},
		"extract onto": extract("jar.zip", "."), "extract below": extract("jar.zip", "to-keys"), "extract a folder onto": extract("secret.zip", "."),
		"arrive onto": arrive("jar.zip", "."), "arrive below": arrive("jar.zip", "to-keys"), "a folder arrives onto": arrive("secret.zip", "."),
		"handle to read": handle("to-jar", v1.OpenMode{Read: true}), "handle to write": handle("server.jar", v1.OpenMode{Write: true, Create: true, Truncate: true}),
		"handle of a new file": handle("keys/x", v1.OpenMode{Write: true, Create: true}), "handle through a link": handle("to-new", v1.OpenMode{Write: true, Create: true}),
		"remove":        func(ctx context.Context, b box) error { return b.RemoveFile(ctx, id, "keys/a") },
		"remove a link": func(ctx context.Context, b box) error { return b.RemoveFile(ctx, id, "private.lnk") },
		"remove folder": func(ctx context.Context, b box) error { return b.RemoveFolder(ctx, id, "keys") },
		"make folder":   func(ctx context.Context, b box) error { return b.MakeFolder(ctx, id, "keys/x") },
		"replace":       replace("plain.txt", "server.jar"), "replace with": replace("server.jar", "plain.txt"), "replace the parent": replace("config", "x"),
		"link": func(ctx context.Context, b box) error { return b.Symlink(ctx, id, "plain.txt", "new.lnk") },
		"readlink": func(ctx context.Context, b box) error {
			_, err := b.Readlink(ctx, id, "private.lnk")
			return err
		},
		"truncate": func(ctx context.Context, b box) error {
			_, err := b.SetAttributes(ctx, id, "to-jar", v1.FileAttributes{Size: &size})
			return err
		},
	}
	b := deniedBox(t)
	before := contents(t, b.dir)
	ctx := v1.WithDenied(t.Context(), deniedPatterns)
	for name, do := range doors {
		require.Equal(t, "file_denied", code(do(ctx, b)), name)
		require.Equal(t, before, contents(t, b.dir), name)
	}
	for name, do := range doors { // without patterns each is possible, or refused for another reason
		require.NotEqual(t, "file_denied", code(do(t.Context(), deniedBox(t))), name)
	}
}

// contents returns the mode and the content of each entry below a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() {
			var text []byte
			text, err = os.ReadFile(p)
			all[p] = string(text)
		}
		all[p] += info.Mode().String()
		return err
	}))
	return all
}

// TestDeniedFilesAreListed: what is denied is listed, and the rest can be used as before.
func TestDeniedFilesAreListed(t *testing.T) {
	b := deniedBox(t)
	ctx := v1.WithDenied(t.Context(), deniedPatterns)
	list, err := b.List(ctx, id, "keys")
	require.NoError(t, err)
	require.Len(t, list, 1)
	found, err := b.Search(ctx, id, ".", "secret")
	require.NoError(t, err)
	require.Len(t, found.Files, 3)
	_, err = b.Stat(ctx, id, "server.jar")
	require.NoError(t, err)
	require.NoError(t, b.Write(ctx, id, "config/plain.yml", strings.NewReader("new")))
	require.NoError(t, b.Rename(ctx, id, "free", "freed"))
	require.NoError(t, b.Copy(ctx, id, "freed", "a/b"))
	require.NoError(t, b.Delete(ctx, id, "freed", nil))
	require.NoError(t, b.Decompress(ctx, id, "jar.zip", "a"), "the pattern is for the root")

	got, err := b.Compress(ctx, id, v1.Compression{Format: "zip", Output: "all"})
	require.NoError(t, err)
	require.Equal(t, 5, got.Skipped, "server.jar, config/secret.yml, keys, keys/a, private.lnk")
	require.NoError(t, b.Decompress(t.Context(), id, "all.zip", "out"))
	var names []string
	for _, name := range b.names(t) {
		if rest, is := strings.CutPrefix(name, "out/"); is {
			names = append(names, rest)
		}
	}
	for _, name := range []string{"server.jar", "config/secret.yml", "keys", "keys/a", "private.lnk"} {
		require.False(t, slices.Contains(names, name), name)
	}
	require.Contains(t, names, "config/plain.yml")

	only := v1.WithDenied(t.Context(), [][]string{{"*", "!*/", "!*.txt"}}) // all but texts
	require.NoError(t, b.Write(only, id, "new/folder/a.txt", strings.NewReader("x")))
	require.Equal(t, "file_denied", code(b.Write(only, id, "new/folder/a.jar", strings.NewReader("x"))))
}
