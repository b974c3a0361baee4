package volume_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oddNames are unusual names that Linux allows.
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

// inMemory returns a folder of a tmpfs, which needs no fsync.
func inMemory(t *testing.T, size string) string {
	t.Helper()
	top := t.TempDir()
	require.NoError(t, unix.Mount("berth-test", top, "tmpfs", 0, "size="+size))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(top, unix.MNT_DETACH)) })
	return top
}

const id = "11111111-2222-3333-4444-555555555555"

// box is one volume with its directory, and a directory outside it.
type box struct {
	*volume.Manager
	dir, outside string
}

// Write replaces a file, whatever it is.
func (b box) Write(ctx context.Context, id, p string, content io.Reader) error {
	_, err := b.Manager.Write(ctx, id, p, content, nil)
	return err
}

// Search finds files, without their times.
func (b box) Search(ctx context.Context, id, p, query string) (v1.SearchResult, error) {
	found, err := b.Manager.Search(ctx, id, p, query)
	for i := range found.Files {
		found.Files[i].ModifiedAt, found.Files[i].ChangedAt = 0, 0
	}
	return found, err
}

// Decompress extracts an archive.
func (b box) Decompress(ctx context.Context, id, archive, dest string) error {
	_, err := b.Manager.Decompress(ctx, id, v1.Decompression{Archive: archive, Destination: dest})
	return err
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
	b := box{m, m.Path(id), filepath.Join(top, "outside")}
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

// temps returns the folder of the volume's temporary entries.
func (b box) temps() string { return filepath.Join(filepath.Dir(b.dir), ".tmp", id) }

// noTemps checks that the volume has no temporary entries.
func noTemps(t testing.TB, b box) {
	t.Helper()
	list, err := os.ReadDir(b.temps())
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	require.Empty(t, list)
}

// content returns n bytes without holes.
func content(n int) *bytes.Reader { return bytes.NewReader(bytes.Repeat([]byte{'0'}, n)) }

func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// reopen returns a manager of the same volumes with other options.
func reopen(t *testing.T, b box, opt volume.Options) *volume.Manager {
	t.Helper()
	m, err := volume.New(filepath.Dir(b.dir), opt)
	require.NoError(t, err)
	return m
}

// begin runs f in a goroutine and closes the channel when f returns.
func begin(f func()) chan struct{} {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	return done
}

// free returns how many bytes are free on a file system.
func free(t testing.TB, dir string) int64 {
	t.Helper()
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	return int64(st.Bavail) * int64(st.Bsize)
}
