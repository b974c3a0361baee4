package volume_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/pathtest"
)

// hostileTexts break the path rules as text.
var hostileTexts = append(pathtest.Texts(), pathtest.InvalidUTF8()...)

// field is one path field of one operation.
type field struct {
	name   string
	follow bool // the end of the path is followed, or must be no link
	call   func(ctx context.Context, b box, p string) error
}

// fields holds every path field of every operation.
var fields = []field{
	{"write", true, func(ctx context.Context, b box, p string) error {
		return b.Write(ctx, id, p, strings.NewReader("hostile"))
	}},
	{"open", true, func(ctx context.Context, b box, p string) error {
		f, err := b.Open(ctx, id, p)
		if err == nil {
			defer f.Close()
			if data, _ := io.ReadAll(f); strings.Contains(string(data), "secret") {
				return nil
			}
			return v1.ErrInvalidPath
		}
		return err
	}},
	{"list", true, func(ctx context.Context, b box, p string) error { _, err := b.List(ctx, id, p); return err }},
	{"mkdir", true, func(ctx context.Context, b box, p string) error { return b.Mkdir(ctx, id, p) }},
	{"delete", false, func(ctx context.Context, b box, p string) error { return b.Delete(ctx, id, p, nil) }},
	{"rename source", false, func(ctx context.Context, b box, p string) error { return b.Rename(ctx, id, p, "taken") }},
	{"rename destination", false, func(ctx context.Context, b box, p string) error { return b.Rename(ctx, id, "dir/file", p) }},
	{"copy source", true, func(ctx context.Context, b box, p string) error { return b.Copy(ctx, id, p, "taken") }},
	{"copy destination", false, func(ctx context.Context, b box, p string) error { return b.Copy(ctx, id, "dir/file", p) }},
	{"chmod", true, func(ctx context.Context, b box, p string) error { return b.Chmod(ctx, id, p, 0o777) }},
	{"search", true, func(ctx context.Context, b box, p string) error { _, err := b.Search(ctx, id, p, "secret"); return err }},
	{"compress output", false, func(ctx context.Context, b box, p string) error {
		_, err := b.Compress(ctx, id, v1.Compression{Output: p, Paths: []string{"dir"}})
		return err
	}},
	{"compress folder", true, func(ctx context.Context, b box, p string) error {
		if p == "" {
			return v1.ErrInvalidPath // counts as absent
		}
		_, err := b.Compress(ctx, id, v1.Compression{Output: "taken", Folder: p})
		return err
	}},
	{"compress paths", true, func(ctx context.Context, b box, p string) error {
		_, err := b.Compress(ctx, id, v1.Compression{Output: "taken", Paths: []string{"dir/file", p}})
		return err
	}},
	{"decompress archive", true, func(ctx context.Context, b box, p string) error { return b.Decompress(ctx, id, p, "dir") }},
	{"archive folder", true, func(ctx context.Context, b box, p string) error {
		stream, err := b.Archive(ctx, id, v1.Tree{Folder: p, Format: "tar"})
		if err != nil {
			return err
		}
		_, err = stream.WriteTo(io.Discard)
		return errors.Join(err, stream.Close())
	}},
	{"extract destination", true, func(ctx context.Context, b box, p string) error {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "dir/", Mode: 0o755}), w.Close())
		if err == nil {
			_, err = b.Extract(ctx, id, &archive, v1.Decompression{Destination: p})
		}
		return err
	}},
	{"decompress destination", true, func(ctx context.Context, b box, p string) error { return b.Decompress(ctx, id, "a.tar", p) }},
}

func TestHostilePaths(t *testing.T) {
	for _, f := range fields {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, options())
			through, last := pathtest.Plant(t, b.dir)
			run(t, b.dir, "tar", "-cf", "a.tar", "dir/file")
			volume, outside := tree(t, b.dir, false), tree(t, b.outside, true)
			for _, p := range append(hostileTexts, through...) {
				require.Equal(t, "invalid_path", code(f.call(t.Context(), b, p)), "%q", p)
			}
			if f.follow {
				for _, p := range last {
					require.Equal(t, "invalid_path", code(f.call(t.Context(), b, p)), "%q", p)
				}
			}
			require.Empty(t, cmp.Diff(volume, tree(t, b.dir, false)), "nothing was created")
			require.Empty(t, cmp.Diff(outside, tree(t, b.outside, true)))
		})
	}
}

// TestHostileFinalLinks tests the operations that act on a link itself.
func TestHostileFinalLinks(t *testing.T) {
	for _, f := range fields {
		if f.follow {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, options())
			_, last := pathtest.Plant(t, b.dir)
			outside := tree(t, b.outside, true)
			for _, p := range last {
				_ = f.call(t.Context(), b, p)
				_ = os.RemoveAll(filepath.Join(b.dir, "taken"))
				_ = os.WriteFile(filepath.Join(b.dir, "dir/file"), []byte("mine"), 0o644)
			}
			require.Empty(t, cmp.Diff(outside, tree(t, b.outside, true)))
			for name, what := range tree(t, b.dir, false) {
				require.NotContains(t, what, " 6 bytes", "a secret came in at %s", name)
			}
		})
	}
}

// TestSpecialFilesNeverBlock puts a FIFO, a socket and a device at every name that an
// operation may open.
func TestSpecialFilesNeverBlock(t *testing.T) {
	makers := map[string]func(p string) error{
		"fifo":   func(p string) error { return syscall.Mkfifo(p, 0o666) },
		"device": func(p string) error { return syscall.Mknod(p, syscall.S_IFCHR|0o666, 1<<8|3) },
		"socket": func(p string) error { return syscall.Mknod(p, syscall.S_IFSOCK|0o666, 0) },
	}
	for kind, mk := range makers {
		for _, f := range fields {
			t.Run(kind+" "+f.name, func(t *testing.T) {
				b := newBox(t, options())
				b.put(t, "dir/file", "mine")
				run(t, b.dir, "tar", "-cf", "a.tar", "dir/file")
				require.NoError(t, mk(filepath.Join(b.dir, "special")))
				require.NoError(t, mk(filepath.Join(b.dir, "dir/special")))
				for _, p := range []string{"special/x", "special", "dir"} {
					done := begin(func() { _ = f.call(t.Context(), b, p) })
					select {
					case <-done:
					case <-time.After(3 * time.Minute):
						t.Fatal("it blocks")
					}
				}
			})
		}
	}
}

// TestAnyName: whatever stands in a volume can be listed, found, read, moved and deleted by the name
// that the list shows.
func TestAnyName(t *testing.T) {
	b := newBox(t, options())
	for _, name := range append(oddNames, "\xc4\xe3.txt", "\x83e\x83X", "\x1b[31m", "\u0085", `\xff`, "\xff", `C:\x`, `\x`, "..x", "a..b") {
		b.put(t, "dir/"+name+"/"+name, name)
		list, err := b.List(t.Context(), id, "dir")
		require.NoError(t, err)
		require.Len(t, list, 1)
		shown := "dir/" + list[0].Name
		if strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz. ") == "" {
			require.Equal(t, name, list[0].Name)
		}
		list, err = b.List(t.Context(), id, shown)
		require.NoError(t, err, "%q", name)
		file := shown + "/" + list[0].Name
		found, err := b.Search(t.Context(), id, shown, "?*")
		require.NoError(t, err)
		require.Equal(t, []v1.FoundFile{{Path: file, Type: v1.TypeFile, Size: int64(len(name))}}, found.Files)
		f, err := b.Open(t.Context(), id, file)
		require.NoError(t, err, "%q", name)
		require.NoError(t, f.Close())
		require.NoError(t, b.Write(t.Context(), id, file, strings.NewReader("new")))
		require.Equal(t, "new", b.get(t, "dir/"+name+"/"+name))
		require.EqualError(t, b.Mkdir(t.Context(), id, file), "File already exists at path: "+file)
		archive, err := b.Compress(t.Context(), id, v1.Compression{Output: shown + "/a", Format: "zip", Paths: []string{file}})
		require.NoError(t, err, "%q", name)
		require.Equal(t, shown+"/a.zip", archive.Path)
		require.NoError(t, b.Copy(t.Context(), id, file, "./"+list[0].Name))
		require.NoError(t, b.Rename(t.Context(), id, "./"+list[0].Name, shown+"/b"))
		require.NoError(t, b.Delete(t.Context(), id, shown, nil))
		require.Equal(t, []string{"dir"}, b.names(t))
	}
}
