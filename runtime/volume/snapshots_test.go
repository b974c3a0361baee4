package volume_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/hack/test/pathtest"
	"berth/runtime/volume"
)

// fingerprint returns the checksum of a tar of dir with everything that a backup keeps.
func fingerprint(t testing.TB, dir string) string {
	t.Helper()
	cmd := exec.Command("tar", "--sort=name", "--format=pax", "--pax-option=exthdr.name=x,delete=atime,delete=ctime",
		"--numeric-owner", "-C", dir, "-cf", "-", ".")
	hash := sha256.New()
	var failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = hash, &failed
	require.NoError(t, cmd.Run(), &failed)
	return hex.EncodeToString(hash.Sum(nil))
}

// backup is an archive of a volume.
type backup struct {
	data []byte
	v1.SnapshotArchive
}

func takeBackup(t testing.TB, b box, ignore ...string) (backup, v1.Snapshot) {
	t.Helper()
	var out bytes.Buffer
	got, err := b.Snapshot(t.Context(), id, &out, v1.SnapshotOptions{Ignore: ignore})
	require.NoError(t, err)
	return newBackup(out.Bytes(), got.Bytes), got
}

// newBackup identifies data as the archive.
func newBackup(data []byte, size int64) backup {
	sum := sha256.Sum256(data)
	return backup{data, v1.SnapshotArchive{Checksum: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data)), Bytes: size}}
}

func (a backup) restore(ctx context.Context, b box, mode string) error {
	return b.Restore(ctx, id, bytes.NewReader(a.data), a.SnapshotArchive, v1.RestoreOptions{Mode: mode})
}

// noRemains checks that nothing is beside the volume.
func noRemains(t testing.TB, b box) {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(b.dir))
	require.NoError(t, err)
	for _, e := range list {
		require.Contains(t, []string{id, ".tmp"}, e.Name())
	}
	noTemps(t, b)
}

// spoil changes the volume in many ways.
func spoil(t testing.TB, b box) {
	t.Helper()
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "odd")))
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "hard"), []byte("spoilt"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(b.dir, "link")))
	b.put(t, "link/new", "a folder where a link was")
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "empty")))
	b.put(t, "empty", "a file where a folder was")
	b.put(t, "added/file", "added")
	require.NoError(t, os.Chmod(b.dir, 0o711))
}

func TestRestoreReplace(t *testing.T) {
	b := newBox(t, options())
	plant(t, b.dir, 300)
	require.NoError(t, os.Chmod(b.dir, 0o2775))
	want := fingerprint(t, b.dir)
	a, got := takeBackup(t, b)
	require.Empty(t, got.Skipped)
	spoil(t, b)
	require.NotEqual(t, want, fingerprint(t, b.dir))
	require.NoError(t, a.restore(t.Context(), b, v1.RestoreReplace))
	require.Equal(t, want, fingerprint(t, b.dir))
	noRemains(t, b)
	use, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, use, b.Used(id), "the usage is measured again")
}

func TestRestoreMerge(t *testing.T) {
	b := newBox(t, options())
	plant(t, b.dir, 300)
	want := tree(t, b.dir, true)
	a, _ := takeBackup(t, b)
	spoil(t, b)
	b.put(t, "empty.too/kept", "kept")
	require.NoError(t, os.Link(filepath.Join(b.dir, "empty.too/kept"), filepath.Join(b.dir, "kept")))
	require.NoError(t, unix.Mkfifo(filepath.Join(b.dir, "fifo"), 0o640))
	inode := stat(t, filepath.Join(b.dir, "kept")).Ino
	for _, kept := range []string{"added", "added/file", "empty.too", "empty.too/kept", "kept", "fifo"} {
		want[kept] = describe(t, filepath.Join(b.dir, kept), true)
	}
	require.NoError(t, a.restore(t.Context(), b, v1.RestoreMerge))
	require.Equal(t, want, tree(t, b.dir, true))
	require.Equal(t, inode, stat(t, filepath.Join(b.dir, "kept")).Ino, "it is not copied")
	require.EqualValues(t, 2, stat(t, filepath.Join(b.dir, "kept")).Nlink)
	noRemains(t, b)
}

func stat(t testing.TB, p string) (st unix.Stat_t) {
	t.Helper()
	require.NoError(t, unix.Lstat(p, &st))
	return st
}

// failing returns an error at its end.
type failing struct {
	r   io.Reader
	err error
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = f.err
	}
	return n, err
}

// TestRestoreFailures: whatever fails, the volume stays as it is.
func TestRestoreFailures(t *testing.T) {
	b := newBox(t, options())
	plant(t, b.dir, 100)
	a, _ := takeBackup(t, b)
	spoil(t, b)
	b.SetLimit(id, 0, v1.Usage{})
	want := fingerprint(t, b.dir)
	check := func(name string, err error, code string) {
		t.Helper()
		require.ErrorContains(t, err, code, name)
		require.Equal(t, want, fingerprint(t, b.dir), name)
		noRemains(t, b)
	}
	for _, mode := range []string{v1.RestoreReplace, v1.RestoreMerge} {
		for _, part := range []int{0, 1, len(a.data) / 2, len(a.data) - 1} {
			r := failing{bytes.NewReader(a.data[:part]), errors.New("connection reset")}
			check("reset", b.Restore(t.Context(), id, r, a.SnapshotArchive, v1.RestoreOptions{Mode: mode}), "connection reset")
			cut := backup{a.data[:part], a.SnapshotArchive}
			check("truncated", cut.restore(t.Context(), b, mode), "Backup is damaged")
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := io.MultiReader(bytes.NewReader(a.data[:1000]), canceling{cancel}, bytes.NewReader(a.data[1000:]))
		check("cancelled", b.Restore(ctx, id, r, a.SnapshotArchive, v1.RestoreOptions{Mode: mode}), "context canceled")
		b.SetLimit(id, a.Bytes-1, v1.Usage{})
		unread := iotest.ErrReader(errors.New("it was read"))
		check("too large", b.Restore(t.Context(), id, unread, a.SnapshotArchive, v1.RestoreOptions{Mode: mode}), "Volume size limit exceeded")
		b.SetLimit(id, 0, v1.Usage{})
	}
	check("mode", a.restore(t.Context(), b, "wipe"), "not supported")
	require.Error(t, b.Restore(t.Context(), "unknown", bytes.NewReader(a.data), a.SnapshotArchive, v1.RestoreOptions{Mode: v1.RestoreReplace}))
}

// only restores some paths.
func (a backup) only(b box, paths ...string) error {
	return b.Restore(context.Background(), id, bytes.NewReader(a.data), a.SnapshotArchive, v1.RestoreOptions{Mode: v1.RestoreMerge, Paths: paths})
}

// TestRestorePaths: these entries are as they were in the backup, and everything else stays, folders above them with their
// attributes. Whatever fails, the volume stays as it is.
func TestRestorePaths(t *testing.T) {
	b := newBox(t, options())
	for _, name := range []string{"world/level.dat", "world/region/r.0", "world/region/r.1", "gone/deep/file", "plugins/a", "odd\xff\n"} {
		b.put(t, name, "old")
	}
	old := tree(t, b.dir, true)
	a, _ := takeBackup(t, b)
	for _, name := range []string{"world/level.dat", "world/region/r.0", "world/new", "world/region/new", "plugins/a", "odd\xff\n"} {
		b.put(t, name, "new")
	}
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "gone")))
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "world"), 0o711))
	require.NoError(t, os.Chmod(b.dir, 0o2775))
	top := stat(t, b.dir)
	want := tree(t, b.dir, true)
	for _, name := range []string{"world/region", "world/region/r.0", "world/region/r.1", "gone", "gone/deep", "gone/deep/file", "odd\xff\n"} {
		want[name] = old[name]
	}
	b.SetLimit(id, a.Bytes, v1.Usage{}) // which the whole backup does not fit into beside the volume
	require.NoError(t, a.only(b, "world/./region/", "gone/deep", `odd\xff\x0a`))
	require.Equal(t, want, tree(t, b.dir, true))
	now := stat(t, b.dir)
	require.Equal(t, []any{top.Mode, top.Mtim}, []any{now.Mode, now.Mtim})
	noRemains(t, b)
	b.SetLimit(id, 0, v1.Usage{})

	b.put(t, "file", "in the way")
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "gone")))
	require.NoError(t, os.Symlink("world", filepath.Join(b.dir, "gone")))
	before := fingerprint(t, b.dir)
	for path, text := range map[string]string{
		"gone/deep/file":  "Volume has a file where the backup has a folder: gone",
		"world/new":       "Backup does not have the path: world/new",
		"world/level.dat": "Volume size limit exceeded",
		"../x":            "Invalid path",
		"a/../../x":       "Invalid path",
		"/etc/passwd":     "Invalid path",
		".":               "",
		"x/..":            "Invalid path",
	} {
		if path == "world/level.dat" {
			b.SetLimit(id, 1, v1.Usage{Bytes: 1 << 20})
		}
		require.ErrorContains(t, a.only(b, "plugins", path), text, path)
		require.Equal(t, before, fingerprint(t, b.dir), path)
		noRemains(t, b)
		b.SetLimit(id, 0, v1.Usage{})
	}
	require.ErrorContains(t, b.Restore(t.Context(), id, bytes.NewReader(a.data), a.SnapshotArchive,
		v1.RestoreOptions{Mode: v1.RestoreReplace, Paths: []string{"world"}}), "merges them")
	require.NoError(t, a.only(b, "gone"), "the entry itself may be of another type")
	require.Equal(t, "old", b.get(t, "gone/deep/file"))
}

// TestHostilePathsOfRestores: no path leads out of a backup or of the volume that it is restored to, whatever links
// are in both.
func TestHostilePathsOfRestores(t *testing.T) {
	b := newBox(t, options())
	through, last := pathtest.Plant(t, b.dir)
	a, _ := takeBackup(t, b)
	before, outside := tree(t, b.dir, true), tree(t, b.outside, true)
	list := func(p string) error {
		_, err := b.ListArchive(t.Context(), bytes.NewReader(a.data), a.SnapshotArchive, p)
		return err
	}
	for _, p := range hostileTexts {
		require.Equal(t, "invalid_path", code(list(p)), "%.60q", p)
		require.Equal(t, "invalid_path", code(a.only(b, "dir", p)), "%.60q", p)
	}
	for _, p := range through {
		require.Equal(t, "path_not_found", code(list(p)), p)
		require.Equal(t, "path_not_found", code(a.only(b, "dir", p)), p)
	}
	for _, p := range last {
		require.Equal(t, "path_not_found", code(list(p)), p)
	}
	require.Equal(t, before, tree(t, b.dir, true))
	require.NoError(t, a.only(b, last...))
	require.Equal(t, before, tree(t, b.dir, true))
	require.Equal(t, outside, tree(t, b.outside, true))
	noRemains(t, b)

	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "dir")))
	require.NoError(t, os.Symlink("../../outside", filepath.Join(b.dir, "dir")))
	require.Error(t, a.only(b, "dir/file"), "a folder of the backup is a link in the volume")
	require.Equal(t, outside, tree(t, b.outside, true))
}

func TestListArchive(t *testing.T) {
	b := newBox(t, options())
	plant(t, b.dir, 100)
	a, _ := takeBackup(t, b)
	list := func(m *volume.Manager, folder string) ([]v1.FileEntry, error) {
		return m.ListArchive(t.Context(), bytes.NewReader(a.data), a.SnapshotArchive, folder)
	}
	for _, folder := range []string{".", "odd", "empty/folder", "empty//./"} {
		want, err := b.List(t.Context(), id, folder)
		require.NoError(t, err)
		got, err := list(b.Manager, folder)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			want[i].TargetType, want[i].ChangedAt = "", 0 // an archive has neither
			if want[i].Name == "hard too" || want[i].Name == "hard" {
				want[i].Size, got[i].Size = 0, 0
			}
		}
		require.Equal(t, want, got, folder)
	}
	_, err := list(b.Manager, "../etc")
	require.ErrorIs(t, err, v1.ErrInvalidPath)
	few := options()
	few.Limits.ListBytes = 300
	_, err = list(reopen(t, b, few), ".")
	require.ErrorContains(t, err, "too many files")
}

type canceling struct{ cancel func() }

func (c canceling) Read([]byte) (int, error) { c.cancel(); return 0, io.EOF }

// TestRestoreAfterCrash: remains of a restore are removed by the first scan, by the next
// restore, and with the volume.
func TestRestoreAfterCrash(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", "content")
	a, _ := takeBackup(t, b)
	crash := func() (restarted box) {
		for _, name := range []string{"0123456789abcdef-0", "removed-0123456789abcdef"} {
			require.NoError(t, os.MkdirAll(filepath.Join(b.temps(), name, "folder/deep"), 0o700))
		}
		m := reopen(t, b, options())
		return box{m, b.dir, b.outside}
	}
	_, err := crash().Scan(t.Context(), id)
	require.NoError(t, err)
	noRemains(t, b)
	require.NoError(t, a.restore(t.Context(), crash(), v1.RestoreReplace))
	noRemains(t, b)
	require.NoError(t, crash().Remove(t.Context(), id))
	noVolume(t, b)
}

// TestRestoreKeepsOthersOut: changes are refused during a restore, reads are not.
func TestRestoreKeepsOthersOut(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", strings.Repeat("content", 1000))
	a, _ := takeBackup(t, b)
	checked := false
	r := io.MultiReader(bytes.NewReader(a.data[:100]), calling{func() {
		checked = true
		for name, err := range map[string]error{
			"write":   b.Write(t.Context(), id, "file", strings.NewReader("x")),
			"delete":  b.Delete(t.Context(), id, "file", nil),
			"remove":  b.Remove(t.Context(), id),
			"restore": a.restore(t.Context(), b, v1.RestoreReplace),
		} {
			require.ErrorIs(t, err, v1.ErrVolumeRestoring, name)
		}
		list, err := b.List(t.Context(), id, ".")
		require.NoError(t, err)
		require.Len(t, list, 1)
		_, err = b.Scan(t.Context(), id)
		require.NoError(t, err)
	}}, bytes.NewReader(a.data[100:]))
	require.NoError(t, b.Restore(t.Context(), id, r, a.SnapshotArchive, v1.RestoreOptions{Mode: v1.RestoreReplace}))
	require.True(t, checked)
	require.NoError(t, b.Write(t.Context(), id, "file", strings.NewReader("x")))
}

type calling struct{ call func() }

func (c calling) Read([]byte) (int, error) { c.call(); return 0, io.EOF }

// TestRestoreEndsSlowWrite: a source that gives a byte now and then does not delay a restore.
func TestRestoreEndsSlowWrite(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", "content")
	a, _ := takeBackup(t, b)
	restored, reads := make(chan error, 1), 0
	err := b.Write(t.Context(), id, "other", reading(func(p []byte) (int, error) {
		if reads++; reads == 1 {
			go func() {
				restored <- b.Restore(t.Context(), id, bytes.NewReader(a.data), a.SnapshotArchive, v1.RestoreOptions{Mode: v1.RestoreReplace})
			}()
			for !errors.Is(b.Delete(t.Context(), id, "nothing", nil), v1.ErrVolumeRestoring) {
				require.NoError(t, t.Context().Err())
			}
		}
		p[0] = 'x'
		return 1, nil
	}))
	require.ErrorIs(t, err, v1.ErrVolumeRestoring)
	require.Equal(t, 1, reads)
	require.NoError(t, <-restored)
}

// reading is a reader of one function.
type reading func(p []byte) (int, error)

func (r reading) Read(p []byte) (int, error) { return r(p) }

// TestRestoreEndsChanges: a restore waits for a change in flight, which fails.
func TestRestoreEndsChanges(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", "content")
	a, _ := takeBackup(t, b)
	restored, reading := make(chan error, 1), make(chan struct{})
	archive := io.MultiReader(calling{func() { close(reading) }}, bytes.NewReader(a.data))
	slow := io.MultiReader(content(1<<20), calling{func() {
		go func() {
			restored <- b.Restore(t.Context(), id, archive, a.SnapshotArchive, v1.RestoreOptions{Mode: v1.RestoreReplace})
		}()
		for !errors.Is(b.Delete(t.Context(), id, "nothing", nil), v1.ErrVolumeRestoring) {
			require.NoError(t, t.Context().Err())
		}
		select {
		case <-reading:
			t.Error("the restore did not wait")
		case <-time.After(300 * time.Millisecond): // long enough for one that does not wait
		}
	}}, content(1<<20))
	require.ErrorIs(t, b.Write(t.Context(), id, "uploaded", slow), v1.ErrVolumeRestoring)
	require.NoError(t, <-restored)
	require.Equal(t, []string{"file"}, b.names(t))
}

// TestReadersSeeOneTree: every list is that of the old tree or that of the new one.
func TestReadersSeeOneTree(t *testing.T) {
	b := newBoxIn(t, inMemory(t, "64m"), options())
	names := func(prefix string) (all []string) {
		for i := range 200 {
			all = append(all, prefix+strings.Repeat("x", i))
		}
		return all
	}
	for _, name := range names("old") {
		b.put(t, name, "")
	}
	old, _ := takeBackup(t, b)
	require.NoError(t, b.Remove(t.Context(), id))
	require.NoError(t, b.Ensure(id))
	for _, name := range names("new") {
		b.put(t, name, "")
	}
	recent, _ := takeBackup(t, b)
	stop := make(chan struct{})
	done := begin(func() {
		defer close(stop)
		for range 20 {
			require.NoError(t, old.restore(t.Context(), b, v1.RestoreReplace))
			require.NoError(t, recent.restore(t.Context(), b, v1.RestoreReplace))
		}
	})
	lists := 0
	for running := true; running; lists++ {
		select {
		case <-stop:
			running = false
		default:
		}
		list, err := b.List(t.Context(), id, ".")
		require.NoError(t, err)
		require.Len(t, list, 200)
		require.Equal(t, list[0].Name[:3], list[199].Name[:3])
	}
	<-done
	require.Greater(t, lists, 20)
}

// TestBackupSkips: what an archive lacks is listed, and what is ignored is not.
func TestBackupSkips(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "kept", "kept")
	b.put(t, "cache/file", "ignored")
	b.put(t, "debug.log", "ignored")
	require.NoError(t, unix.Mkfifo(filepath.Join(b.dir, "fifo"), 0o644))
	a, got := takeBackup(t, b, "*.log", "cache/")
	require.Equal(t, []v1.Skipped{{Path: "fifo", Reason: "special"}}, got.Skipped)
	require.EqualValues(t, 1, got.SkippedTotal)
	require.EqualValues(t, 1, got.Files)
	require.NoError(t, a.restore(t.Context(), b, v1.RestoreReplace))
	require.Equal(t, []string{"kept"}, b.names(t))
}

// TestBackupProgress: the last call has all bytes, and the total is never below them.
func TestBackupProgress(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", strings.Repeat("x", 3<<20))
	var last, total int64
	progress := func(bytes, all int64) {
		require.GreaterOrEqual(t, bytes, last)
		require.GreaterOrEqual(t, all, bytes)
		last, total = bytes, all
	}
	var out bytes.Buffer
	got, err := b.Snapshot(t.Context(), id, &out, v1.SnapshotOptions{Progress: progress})
	require.NoError(t, err)
	require.EqualValues(t, 3<<20, last)
	a := newBackup(out.Bytes(), got.Bytes)
	last = 0
	require.NoError(t, b.Restore(t.Context(), id, &out, a.SnapshotArchive, v1.RestoreOptions{Mode: v1.RestoreReplace, Progress: progress}))
	require.EqualValues(t, 3<<20, last)
	require.Equal(t, got.Bytes, total)
}

// TestBackupFails: an error of the target and a missing directory are errors.
func TestBackupFails(t *testing.T) {
	b := newBox(t, options())
	plant(t, b.dir, 100)
	_, err := b.Snapshot(t.Context(), id, refusing{}, v1.SnapshotOptions{})
	require.ErrorIs(t, err, fs.ErrClosed)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Snapshot(ctx, id, io.Discard, v1.SnapshotOptions{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Snapshot(t.Context(), "unknown", io.Discard, v1.SnapshotOptions{})
	require.ErrorIs(t, err, v1.ErrDirectoryMissing)
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, fs.ErrClosed }
