package backup_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"berth/runtime/volume/backup"
)

// names are drawn for the entries of random trees.
var names = rapid.OneOf(
	rapid.StringMatching(`[a-c]{1,2}`),
	rapid.SampledFrom([]string{"with space", "new\nline", "ünïcödé-🎮", "\xff\xfe", "-rf", "dots..", "...", "back\\slash",
		"'quote\"", "*", strings.Repeat("n", 255), strings.Repeat("é", 127), strings.Repeat("m", 99), strings.Repeat("l", 100), "100%=x\n3 a=b\n"}),
)

// plant creates a random tree in dir.
func plant(t *rapid.T, dir string) {
	folders, files := []string{""}, []string{}
	for i := range rapid.IntRange(0, 25).Draw(t, "entries") {
		up := rapid.SampledFrom(folders).Draw(t, "folder")
		rel := filepath.Join(up, names.Draw(t, "name"))
		p := filepath.Join(dir, rel)
		if _, err := os.Lstat(p); err == nil || len(rel) > 3000 {
			continue
		}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			require.NoError(t, os.Mkdir(p, 0o700))
			folders = append(folders, rel)
			continue
		case 1:
			target := rapid.SampledFrom([]string{"a", "../../outside", "/etc/passwd", "\xff", strings.Repeat("t/", 200), "nowhere"}).Draw(t, "target")
			require.NoError(t, os.Symlink(target, p))
		case 2:
			if len(files) == 0 {
				continue
			}
			require.NoError(t, os.Link(filepath.Join(dir, rapid.SampledFrom(files).Draw(t, "linked")), p))
			continue
		default:
			plantFile(t, p)
			files = append(files, rel)
		}
		attributes(t, p, i)
	}
	slices.Reverse(folders) // an entry changes the time of its folder
	for i, rel := range folders {
		attributes(t, filepath.Join(dir, rel), i)
	}
}

// plantFile creates a file with a few extents of data.
func plantFile(t *rapid.T, p string) {
	f, err := os.Create(p)
	require.NoError(t, err)
	defer f.Close()
	for range rapid.IntRange(0, 4).Draw(t, "extents") {
		data := bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "byte"))}, rapid.SampledFrom([]int{1, 511, 512, 513, 4096, 70000}).Draw(t, "bytes"))
		_, err := f.WriteAt(data, rapid.SampledFrom([]int64{0, 1, 4096, 65536, 1 << 20, 1 << 24}).Draw(t, "offset"))
		require.NoError(t, err)
	}
	if rapid.Bool().Draw(t, "grow") {
		require.NoError(t, f.Truncate(rapid.SampledFrom([]int64{0, 5, 8192, 1 << 22, 1<<25 + 1}).Draw(t, "size")))
	}
}

// attributes sets the owner, the mode and the time of an entry. i differs between entries.
func attributes(t *rapid.T, p string, i int) {
	var st unix.Stat_t
	require.NoError(t, unix.Lstat(p, &st))
	id := rapid.SampledFrom([]int{0, 1000, 1<<21 - 1, 1 << 21, 1<<32 - 2})
	require.NoError(t, unix.Lchown(p, id.Draw(t, "uid"), id.Draw(t, "gid")))
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		require.NoError(t, unix.Chmod(p, uint32(rapid.IntRange(0, 0o7777).Draw(t, "mode"))))
	}
	sec := rapid.SampledFrom([]int64{0, 1, -1, 1700000000, -2000000000, 1<<33 + 5}).Draw(t, "seconds")
	nsec := rapid.SampledFrom([]int64{0, 1, 500000000, 999999999, int64(i)}).Draw(t, "nanoseconds")
	times := []unix.Timespec{{Sec: sec, Nsec: nsec}, {Sec: sec, Nsec: nsec}}
	require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, p, times, unix.AT_SYMLINK_NOFOLLOW))
}

// fewer draws 30 trees in this test instead of 100, unless BERTH_LONG is set.
func fewer(t *testing.T) {
	if checks := flag.Lookup("rapid.checks").Value; os.Getenv("BERTH_LONG") == "" && checks.String() == "100" {
		require.NoError(t, checks.Set("30"))
		t.Cleanup(func() { require.NoError(t, checks.Set("100")) })
	}
}

// TestRandomTrees: a tree is the same after it was extracted by GNU tar, and after
// Extract. 30 trees are drawn, with BERTH_LONG 100.
func TestRandomTrees(t *testing.T) {
	fewer(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		defer os.RemoveAll(dir)
		plant(rt, dir)
		want := describe(t, dir)
		archive, result, a := write(t, dir, backup.Options{})
		require.Empty(rt, result.Skipped)
		got, err := extract(t, archive, a)
		require.NoError(rt, err)
		defer os.RemoveAll(got)
		sameTree(rt, want, describe(t, got))
		gnu := gnuTar(t, archive)
		defer os.RemoveAll(gnu)
		sameTree(rt, want, describe(t, gnu))
	})
}

// gnuTar extracts an archive by GNU tar.
func gnuTar(t testing.TB, archive []byte) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("tar", "--zstd", "-xpf", "-", "--numeric-owner", "--same-owner", "-P", "--delay-directory-restore", "-C", dir)
	cmd.Stdin = bytes.NewReader(archive)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}
