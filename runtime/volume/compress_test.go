package volume_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// oddNames are what Linux allows in a file's name.
var oddNames = []string{
	"plain", "with space", "ünïcödé-日本語-🎮", "tab\tand\nnewline", "quote'\"`", "-rf", "~", "$HOME",
	"percent%20", "star*?[x]", "dots..inside", "...", "trailing.", "ünı", strings.Repeat("n", 255),
	"semi;colon&", "back\\slash", "bell\a", "UPPER", "#hash", ".hidden",
}

var oddModes = []fs.FileMode{0o644, 0o600, 0o755, 0o400, 0o000, 0o777, 0o751}

// plant creates a tree of n files with odd names, modes, times and content.
func plant(t testing.TB, dir string, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	made := time.Date(2021, 3, 4, 5, 6, 7, 0, time.UTC)
	for i := range n {
		sub := filepath.Join(dir, oddNames[i/7%len(oddNames)], fmt.Sprint("d", i/100))
		require.NoError(t, os.MkdirAll(sub, 0o755))
		p := filepath.Join(sub, fmt.Sprintf("%d %.200s", i, oddNames[i%len(oddNames)]))
		data := make([]byte, r.IntN(2000))
		for k := range data {
			data[k] = byte(r.IntN(40))
		}
		require.NoError(t, os.WriteFile(p, data, 0o600))
		require.NoError(t, os.Chmod(p, oddModes[i%len(oddModes)]))
		require.NoError(t, os.Chtimes(p, made, made.Add(time.Duration(i)*time.Second)))
	}
	plantSpecial(t, dir)
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && p != dir {
			return os.Chtimes(p, made, made)
		}
		return err
	}))
}

// plantSpecial adds entries that are not regular files.
func plantSpecial(t testing.TB, dir string) {
	t.Helper()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.MkdirAll(in("empty/folder"), 0o755))
	require.NoError(t, os.Chmod(in("empty/folder"), 0o711))
	require.NoError(t, os.Mkdir(in("odd"), 0o755))
	for i, name := range oddNames {
		require.NoError(t, os.WriteFile(in("odd/"+name), []byte(name), 0o600))
		require.NoError(t, os.Chmod(in("odd/"+name), oddModes[i%len(oddModes)]))
		require.NoError(t, os.Symlink(name, in(fmt.Sprint("odd/to ", i))))
	}
	require.NoError(t, os.WriteFile(in("zero"), nil, 0o644))
	require.NoError(t, os.WriteFile(in("padded"), append([]byte("zeros to a round size"), make([]byte, 1<<20-21)...), 0o644))
	require.NoError(t, os.Symlink("zero", in("link")))
	require.NoError(t, os.Symlink("../empty", in("empty/up")))
	require.NoError(t, os.Symlink("nowhere", in("dangling")))
	require.NoError(t, os.WriteFile(in("hard"), []byte("hard"), 0o644))
	require.NoError(t, os.Link(in("hard"), in("hard too")))
	require.NoError(t, os.MkdirAll(in(strings.Repeat("deep/", 40)+strings.Repeat("long", 30)), 0o755))
	f, err := os.Create(in("sparse"))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("in the middle"), 5<<20)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(16<<20+5))
}

// tree describes everything below dir: mode, time, and content or target.
func tree(t testing.TB, dir string, times bool) map[string]string {
	t.Helper()
	seen := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		seen[strings.TrimPrefix(p, dir+"/")] = describe(t, p, times)
		return nil
	}))
	return seen
}

func describe(t testing.TB, p string, times bool) string {
	t.Helper()
	info, err := os.Lstat(p)
	require.NoError(t, err)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(p)
		require.NoError(t, err)
		return "-> " + target
	case !info.Mode().IsRegular() && !info.IsDir():
		return "special"
	}
	text := info.Mode().String()
	if times {
		text += " " + info.ModTime().UTC().Format(time.DateTime)
	}
	if info.IsDir() {
		return text
	}
	data, err := os.ReadFile(p)
	require.NoError(t, err)
	return fmt.Sprintf("%s %d bytes, %x", text, len(data), crc32.ChecksumIEEE(data))
}

// run calls one of the system's tools in dir.
func run(t testing.TB, dir, tool string, args ...string) {
	t.Helper()
	cmd := exec.Command(tool, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s %v: %s", tool, args, &out)
}

// treeSize is how many files the round trips have; BERTH_LONG takes the full 10,000.
func treeSize() int {
	if os.Getenv("BERTH_LONG") != "" {
		return 10_000
	}
	return 700
}

func TestRoundTrip(t *testing.T) {
	for _, format := range v1.Formats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, options())
			src := filepath.Join(b.dir, "src")
			require.NoError(t, os.Mkdir(src, 0o755))
			plant(t, src, treeSize())
			want := tree(t, src, true)

			a, err := b.Compress(t.Context(), id, v1.Compression{Format: format, Output: "out", Folder: "src"})
			require.NoError(t, err)
			require.Equal(t, "src/out."+format, a.Path)
			require.Zero(t, a.Skipped)
			info, err := os.Stat(filepath.Join(b.dir, a.Path))
			require.NoError(t, err)
			require.Equal(t, info.Size(), a.Size)
			require.Equal(t, fs.FileMode(0o644), info.Mode())

			require.NoError(t, b.Decompress(t.Context(), id, a.Path, "new/dst"))
			require.Empty(t, cmp.Diff(want, tree(t, filepath.Join(b.dir, "new/dst"), true)))
			sparseAgain(t, filepath.Join(b.dir, "new/dst/sparse"))

			theirs := t.TempDir()
			unfoldByTool(t, format, filepath.Join(b.dir, a.Path), theirs)
			require.Empty(t, cmp.Diff(want, tree(t, theirs, true)))
		})
	}
}

// TestZerosRoundTrip extracts a highly compressible archive that berth created.
func TestZerosRoundTrip(t *testing.T) {
	for _, format := range v1.Formats {
		b := newBox(t, options())
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, "zeros"), nil, 0o644))
		require.NoError(t, os.Truncate(filepath.Join(b.dir, "zeros"), 200<<20))
		a, err := b.Compress(t.Context(), id, v1.Compression{Format: format, Output: "a"})
		require.NoError(t, err)
		require.NoError(t, b.Decompress(t.Context(), id, a.Path, "out"), format)
		info, err := os.Stat(filepath.Join(b.dir, "out/zeros"))
		require.NoError(t, err)
		require.Equal(t, int64(200<<20), info.Size(), format)
	}
}

func sparseAgain(t testing.TB, p string) {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Stat(p, &st))
	require.Less(t, st.Blocks*512, int64(1<<20), "holes are holes again")
}

func unfoldByTool(t testing.TB, format, archive, dir string) {
	t.Helper()
	switch format {
	case "zip":
		run(t, dir, "unzip", "-q^", archive)
	case "tar.bz2":
		run(t, dir, "bzip2", "-t", archive)
		run(t, dir, "tar", "-xpjf", archive)
	case "tar.gz":
		run(t, dir, "gzip", "-t", archive)
		run(t, dir, "tar", "-xpzf", archive)
	default:
		run(t, dir, "tar", "-xpf", archive)
	}
}

func TestExtractSystemArchives(t *testing.T) {
	src := t.TempDir()
	plant(t, src, treeSize())
	want := tree(t, src, true)
	makers := map[string][]string{
		"a.zip":     {"zip", "-qry"},
		"a.tar":     {"tar", "-cf"},
		"gnu.tar":   {"tar", "--format=gnu", "-S", "-cf"},
		"pax.tar":   {"tar", "--format=pax", "-S", "-cf"},
		"a.tar.gz":  {"tar", "-czf"},
		"a.tar.bz2": {"tar", "-cjf"},
	}
	for name, args := range makers {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, options())
			args := append(args[:len(args):len(args)], filepath.Join(b.dir, name))
			run(t, src, args[0], append(args[1:], ".")...)
			require.NoError(t, b.Decompress(t.Context(), id, name, "."))
			require.NoError(t, os.Remove(filepath.Join(b.dir, name)))
			require.Empty(t, cmp.Diff(want, tree(t, b.dir, true)))
		})
	}
}

func TestCopyKeepsTheTree(t *testing.T) {
	b := newBox(t, options())
	src := filepath.Join(b.dir, "src")
	require.NoError(t, os.Mkdir(src, 0o755))
	plant(t, src, treeSize())
	require.NoError(t, b.Copy(t.Context(), id, "src", "dst"))
	require.Empty(t, cmp.Diff(tree(t, src, true), tree(t, filepath.Join(b.dir, "dst"), true)))
	sparseAgain(t, filepath.Join(b.dir, "dst/sparse"))
}
