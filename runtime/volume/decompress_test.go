package volume_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// part is one entry of a hostile archive.
type part struct {
	name string
	kind byte // a type flag of package tar; 0 is a file
	to   string
	data string
	mode int64
}

func file(name string) part { return part{name: name, data: "hostile"} }

func folder(name string) part { return part{name: name, kind: tar.TypeDir, mode: 0o755} }

func link(name, to string) part { return part{name: name, kind: tar.TypeSymlink, to: to} }

func hard(name, to string) part { return part{name: name, kind: tar.TypeLink, to: to} }

func node(name string, k byte) part { return part{name: name, kind: k} }

// hostileArchives holds archives that must be refused with the code and leave nothing.
var hostileArchives = []struct {
	name  string
	code  string
	parts []part
}{
	{"dots", "invalid_path", []part{file("ok"), file("../escape")}},
	{"dots inside", "invalid_path", []part{file("a/../../escape")}},
	{"dots that stay", "invalid_path", []part{file("a/../b")}},
	{"dots folder", "invalid_path", []part{folder("../escape/")}},
	{"dots behind a slash", "invalid_path", []part{file("/../escape")}},
	{"drive", "invalid_path", []part{file(`C:\escape`)}},
	{"drive with slashes", "invalid_path", []part{file("c:/escape")}},
	{"backslash", "invalid_path", []part{file(`\escape`)}},
	{"backslash dots", "invalid_path", []part{file(`..\escape`)}},
	{"backslash dots inside", "invalid_path", []part{file(`a\..\..\escape`)}},
	{"long component", "invalid_path", []part{file(strings.Repeat("n", 256))}},
	{"long name", "invalid_path", []part{file(strings.Repeat("n/", 2100) + "n")}},
	{"the root as a file", "invalid_path", []part{file("./.")}},
	{"through a new link", "invalid_path", []part{folder("d/"), link("l", "d"), file("l/through")}},
	{"folder through a new link", "invalid_path", []part{folder("d/"), link("l", "d"), folder("l/")}},
	{"through a chain", "invalid_path", []part{link("a", "b"), link("b", "."), file("a/escape")}},
	{"hard link to outside", "invalid_path", []part{hard("h", "../../outside/secret")}},
	{"hard link to absolute", "invalid_archive", []part{hard("h", "/etc/passwd")}},
	{"hard link to nothing", "invalid_archive", []part{hard("h", "none")}},
	{"hard link through a link", "invalid_archive", []part{link("l", "folder"), hard("h", "l/x")}},
	{"hard link to the volume", "invalid_archive", []part{hard("h", "victim")}},
	{"file as folder", "invalid_archive", []part{file("f"), file("f/x")}},
	{"folder as file", "invalid_archive", []part{file("d/x"), file("d")}},
	{"deep", "size_limit_exceeded", []part{file(strings.Repeat("d/", 40) + "f")}},
	{"deep folder", "size_limit_exceeded", []part{folder(strings.Repeat("d/", 41))}},
	{"many", "size_limit_exceeded", many(60)},
	{"large", "size_limit_exceeded", []part{{name: "f", data: strings.Repeat("x", 1<<20+1)}}},
	{"large together", "size_limit_exceeded", []part{
		{name: "f", data: strings.Repeat("x", 1<<19)}, {name: "g", data: strings.Repeat("x", 1<<19)}, file("h")}},
	{"not into a file", "file_exists", []part{file("ok"), file("folder")}},
	{"not into a folder", "file_exists", []part{file("ok"), file("victim/x")}},
}

func many(n int) (list []part) {
	for i := range n {
		list = append(list, file(strings.Repeat("f", i+1)))
	}
	return list
}

var smallLimits = volume.Options{UID: -1, GID: -1,
	Limits: volume.Limits{ExtractBytes: 1 << 20, Entries: 50, Depth: 40}}

// extraction extracts the file a of a box.
type extraction func(ctx context.Context, b box, dest string) (v1.Extraction, error)

// ways are those in which an archive is extracted: from the volume, or while it arrives.
var ways = map[string]extraction{
	"decompress": func(ctx context.Context, b box, dest string) (v1.Extraction, error) {
		return b.Manager.Decompress(ctx, id, v1.Decompression{Archive: "a", Destination: dest})
	},
	"arrives": func(ctx context.Context, b box, dest string) (v1.Extraction, error) {
		data, err := os.ReadFile(filepath.Join(b.dir, "a"))
		if err != nil {
			return v1.Extraction{}, err
		}
		return b.Extract(ctx, id, iotest.HalfReader(bytes.NewReader(data)), v1.Decompression{Destination: dest})
	},
}

// inWays runs a test with each format in each way.
func inWays(t *testing.T, test func(t *testing.T, format string, extract extraction)) {
	for way, extract := range ways {
		for _, format := range append(v1.Formats(), "tar.zst") {
			t.Run(way+"/"+format, func(t *testing.T) { test(t, format, extract) })
		}
	}
}

func TestHostileArchives(t *testing.T) {
	inWays(t, func(t *testing.T, format string, extract extraction) {
		for _, c := range hostileArchives {
			if format == "zip" && c.parts[len(c.parts)-1].kind == tar.TypeLink {
				continue // a zip has no hard links
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				b := newBox(t, smallLimits)
				b.put(t, "dest/victim", "mine")
				b.put(t, "dest/folder/x", "mine")
				b.put(t, "victim", "mine")
				archive := pack(t, format, c.parts)
				b.put(t, "a", string(archive))
				before, outside := tree(t, b.dir, true), tree(t, b.outside, true)
				for _, dest := range []string{"dest", "new/dest", "."} {
					if c.code == "file_exists" && dest != "dest" {
						continue
					}
					_, err := extract(t.Context(), b, dest)
					require.Equal(t, c.code, code(err), dest)
				}
				require.Empty(t, cmp.Diff(before, tree(t, b.dir, true)), "it leaves nothing")
				require.Empty(t, cmp.Diff(outside, tree(t, b.outside, true)))
				require.NoFileExists(t, "/tmp/berth-escape")
				noTemps(t, b)
			})
		}
	})
}

// pack returns an archive with these parts, valid or not.
func pack(t testing.TB, format string, parts []part) []byte {
	t.Helper()
	if format == "zip" {
		return packZip(t, parts)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, p := range parts {
		h := &tar.Header{Name: p.name, Typeflag: p.kind, Linkname: p.to, Mode: p.mode, Size: int64(len(p.data)), Format: tar.FormatPAX}
		if p.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		require.NoError(t, w.WriteHeader(h))
		_, err := w.Write([]byte(p.data))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	switch format {
	case "tar.gz":
		return filter(t, buf.Bytes(), "gzip", "-1")
	case "tar.bz2":
		return filter(t, buf.Bytes(), "bzip2", "-1")
	case "tar.zst":
		return filter(t, buf.Bytes(), "zstd", "-1")
	}
	return buf.Bytes()
}

func packZip(t testing.TB, parts []part) []byte {
	t.Helper()
	types := map[byte]fs.FileMode{tar.TypeDir: fs.ModeDir, tar.TypeSymlink: fs.ModeSymlink,
		tar.TypeChar: fs.ModeDevice | fs.ModeCharDevice, tar.TypeBlock: fs.ModeDevice, tar.TypeFifo: fs.ModeNamedPipe}
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, p := range parts {
		h := &zip.FileHeader{Name: p.name, Method: zip.Deflate}
		h.SetMode(types[p.kind] | fs.FileMode(p.mode))
		if p.kind == tar.TypeDir {
			h.Method = zip.Store
		}
		f, err := w.CreateHeader(h)
		require.NoError(t, err)
		_, err = f.Write([]byte(p.data + p.to))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func filter(t testing.TB, data []byte, tool string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(tool, args...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}

// TestUnusualEntries: what a volume cannot hold is left out and listed, and the rest is
// extracted. Nothing is written through a link that was left out.
func TestUnusualEntries(t *testing.T) {
	inWays(t, func(t *testing.T, format string, extract extraction) {
		b := newBox(t, smallLimits)
		parts := []part{file("first"), node("char", tar.TypeChar), node("block", tar.TypeBlock), node("fifo", tar.TypeFifo),
			link("absolute", "/etc/passwd"), link("etc", "/etc"), file("etc/file"), link("l", "first"),
			link("above", "../../../outside"), folder("d/"), link("d/above", "../../../x"), link("chain", "above"), file("above/file"),
			link("to nothing", ""), file("/absolute file")}
		want := []v1.Skipped{{Path: "char", Reason: "special"}, {Path: "block", Reason: "special"}, {Path: "fifo", Reason: "special"},
			{Path: "absolute", Reason: "link"}, {Path: "etc", Reason: "link"}, {Path: "above", Reason: "link"},
			{Path: "d/above", Reason: "link"}, {Path: "to nothing", Reason: "link"}}
		if format != "zip" {
			parts = append(parts, hard("to a link", "l"), hard("to a skipped link", "absolute"))
			want = append(want, v1.Skipped{Path: "to a link", Reason: "link"}, v1.Skipped{Path: "to a skipped link", Reason: "link"})
		}
		b.put(t, "a", string(pack(t, format, append(parts, file("last")))))
		outside := tree(t, b.outside, true)
		got, err := extract(t.Context(), b, "out")
		require.NoError(t, err)
		require.Equal(t, v1.Extraction{Skipped: want, SkippedTotal: len(want)}, got)
		entries, err := b.List(t.Context(), id, "out")
		require.NoError(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name)
		}
		require.Equal(t, []string{"above", "d", "etc", "absolute file", "chain", "first", "l", "last"}, names)
		require.FileExists(t, filepath.Join(b.dir, "out/etc/file"))
		require.Empty(t, cmp.Diff(outside, tree(t, b.outside, true)))
	})
}

// TestCompressedFiles: a compressed file that is no tar is extracted under its name.
func TestCompressedFiles(t *testing.T) {
	b := newBox(t, smallLimits)
	text := strings.Repeat("a line of a log\n", 100)
	for name, tool := range map[string]string{"x.log.gz": "gzip", "X.LOG.GZ": "gzip", "y.log.bz2": "bzip2", "z.log.zst": "zstd", "w": "gzip"} {
		b.put(t, name, string(filter(t, []byte(text), tool)))
		require.NoError(t, b.Decompress(t.Context(), id, name, "out"), name)
	}
	for name, want := range map[string]string{"x.log": text, "X.LOG": text, "y.log": text, "z.log": text, "w.out": text} {
		require.Equal(t, want, readFile(t, filepath.Join(b.dir, "out", name)), name)
	}
	b.put(t, "a.tar.zst", string(filter(t, pack(t, "tar", []part{file("in a tar")}), "zstd", "-19")))
	require.NoError(t, b.Decompress(t.Context(), id, "a.tar.zst", "out"))
	require.Equal(t, "hostile", readFile(t, filepath.Join(b.dir, "out/in a tar")))
	b.put(t, "empty.tgz", string(filter(t, make([]byte, 10240), "gzip")))
	require.NoError(t, b.Decompress(t.Context(), id, "empty.tgz", "empty"))
	b.put(t, "zeros.gz", string(filter(t, make([]byte, 10240), "gzip")))
	require.NoError(t, b.Decompress(t.Context(), id, "zeros.gz", "out"))
	require.Len(t, readFile(t, filepath.Join(b.dir, "out/zeros")), 10240)
	b.put(t, "large.gz", string(filter(t, make([]byte, 1<<20+1), "gzip")))
	require.Equal(t, "size_limit_exceeded", code(b.Decompress(t.Context(), id, "large.gz", "out")))
	b.put(t, "a.xz", string(filter(t, []byte(text), "xz")))
	require.ErrorContains(t, b.Decompress(t.Context(), id, "a.xz", "out"), "in the format xz, which is not supported")
	require.Equal(t, "invalid_archive", code(b.Decompress(t.Context(), id, "a.xz", "out")))
	b.put(t, "long.zst", string(filter(t, []byte(strings.Repeat(text, 10000)), "zstd", "--long=27", "--ultra", "-22")))
	require.ErrorContains(t, b.Decompress(t.Context(), id, "long.zst", "out"), "needs more than 8 MiB of memory")
	require.NoFileExists(t, filepath.Join(b.dir, "out/long"))
}

func TestDamagedArchives(t *testing.T) {
	inWays(t, func(t *testing.T, format string, extract extraction) {
		b := newBox(t, options())
		whole := pack(t, format, []part{{name: "a", data: strings.Repeat("some text ", 5000)}, file("b/c"), folder("d/")})
		damaged := map[string][]byte{
			"empty": nil, "text": []byte(strings.Repeat("no archive\n", 100)), "short": whole[:10],
			"half": whole[:len(whole)/2], "magic": append([]byte("PK\x03\x04"), whole[:100]...),
		}
		if format != "tar" { // which has no checksum of its content
			for _, at := range []int{len(whole) / 2, len(whole) / 3} {
				flipped := bytes.Clone(whole)
				flipped[at] ^= 0x55
				damaged["flipped"] = flipped
			}
		}
		if format == "tar.gz" || format == "tar.bz2" || format == "tar.zst" {
			damaged["last bytes"] = whole[:len(whole)-3]
		}
		for name, data := range damaged {
			b.put(t, "a", string(data))
			_, err := extract(t.Context(), b, "out")
			require.Equal(t, "invalid_archive", code(err), name)
			require.Equal(t, []string{"a"}, b.names(t), name)
		}
	})
}

// TestBombs extracts archives whose contents are far larger than the archive.
func TestBombs(t *testing.T) {
	for way, extract := range ways {
		b := newBox(t, volume.Options{UID: -1, GID: -1, Limits: volume.Limits{ExtractBytes: 200 << 20, Ratio: 2000}})
		refused := func() string {
			_, err := extract(t.Context(), b, "out")
			require.Equal(t, "size_limit_exceeded", code(err), way)
			require.Equal(t, []string{"a"}, b.names(t), way)
			return err.Error()
		}
		for _, tool := range []string{"gzip", "bzip2", "zstd"} {
			src := t.TempDir()
			f, err := os.Create(filepath.Join(src, "zeros"))
			require.NoError(t, err)
			require.NoError(t, f.Truncate(300<<20))
			require.NoError(t, f.Close())
			run(t, src, "sh", "-c", "tar -c zeros | "+tool+" > "+filepath.Join(b.dir, "a"))
			refused()
		}
		run(t, b.dir, "sh", "-c", "head -c 100M /dev/zero > z; tar -c z | bzip2 > a; rm z")
		require.Equal(t, "Archive extracts to more than 2000 times its size", refused())
	}
}

// globals returns a tar of n blocks that belong to no file.
func globals(t *testing.T, n int) []byte {
	var one, all bytes.Buffer
	w := tar.NewWriter(&one)
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}))
	require.NoError(t, w.Flush())
	for all.Len() < n*512 {
		all.Write(one.Bytes())
	}
	return all.Bytes()
}

// TestBombsOutsideFiles extracts archives whose bytes belong to no file: they follow
// the end of the tar, or are headers without an entry.
func TestBombsOutsideFiles(t *testing.T) {
	b := newBox(t, volume.Options{UID: -1, GID: -1, Limits: volume.Limits{Ratio: 100}})
	src := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(src, "globals"), globals(t, 150_000), 0o600))
	for name, feed := range map[string]string{"after the end": "head -c 70M /dev/zero", "headers of nothing": "cat globals"} {
		for _, tool := range []string{"gzip", "bzip2"} {
			run(t, src, "sh", "-c", feed+" | "+tool+" > "+filepath.Join(b.dir, "a"))
			for way, extract := range ways {
				_, err := extract(t.Context(), b, "out")
				require.EqualError(t, err, "Archive extracts to more than 100 times its size", name, way)
				require.Equal(t, []string{"a"}, b.names(t))
			}
		}
	}
}

// TestExtractBombCancelled checks that an extraction notices its cancellation while
// it reads no more bytes of the archive.
func TestExtractBombCancelled(t *testing.T) {
	b := newBox(t, options())
	run(t, b.dir, "sh", "-c", "head -c 60M /dev/zero | bzip2 > a")
	ctx := &after{Context: t.Context()}
	ctx.n.Store(20)
	require.ErrorIs(t, b.Decompress(ctx, id, "a", "out"), context.Canceled)
	require.Equal(t, []string{"a"}, b.names(t))
}
