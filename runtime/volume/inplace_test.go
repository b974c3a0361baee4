package volume_test

import (
	"bytes"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

const ownVolume = "own"

// newInPlace returns the manager of an empty volume, and its directory.
func newInPlace(t *testing.T) (*volume.Manager, string) {
	t.Helper()
	m, err := volume.New(t.TempDir(), volume.Options{UID: -1, GID: -1})
	require.NoError(t, err)
	require.NoError(t, m.Ensure(ownVolume))
	_, err = m.Scan(t.Context(), ownVolume)
	require.NoError(t, err)
	return m, m.Path(ownVolume)
}

var writing = v1.OpenMode{Write: true, Create: true}

func setAttributes(t *testing.T, m *volume.Manager, p string, a v1.FileAttributes) error {
	_, err := m.SetAttributes(t.Context(), ownVolume, p, a)
	return err
}

func TestInPlacePaths(t *testing.T) {
	m, dir := newInPlace(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	for _, p := range []string{"", "/x", "..", "../x", "a/../x", "a/..", "\x00", strings.Repeat("n", 256)} {
		_, err := m.OpenFile(t.Context(), ownVolume, p, writing)
		require.Equal(t, "invalid_path", code(err), p)
		_, err = m.OpenFolder(t.Context(), ownVolume, p)
		require.Equal(t, "invalid_path", code(err), p)
		_, err = m.Stat(t.Context(), ownVolume, p)
		require.Equal(t, "invalid_path", code(err), p)
		for _, err := range []error{
			m.MakeFolder(t.Context(), ownVolume, p), m.RemoveFile(t.Context(), ownVolume, p), m.RemoveFolder(t.Context(), ownVolume, p),
			m.MoveOver(t.Context(), ownVolume, p, "new"), m.Move(t.Context(), ownVolume, "file", p),
			m.Symlink(t.Context(), ownVolume, "file", p), setAttributes(t, m, p, v1.FileAttributes{}),
		} {
			require.Equal(t, "invalid_path", code(err), p)
		}
	}
	for _, p := range []string{"a..b", "..a", "a..", "...", "dir/a..b", `\x`, "c:x", "a\nb", "\xff"} {
		_, err := m.Lstat(t.Context(), ownVolume, p)
		require.ErrorIs(t, err, &v1.Error{Code: v1.PathNotFound}, p)
	}
}

func TestInPlaceOpenModes(t *testing.T) {
	m, dir := newInPlace(t)
	open := func(p string, mode v1.OpenMode) (v1.FileHandle, error) {
		return m.OpenFile(t.Context(), ownVolume, p, mode)
	}
	_, err := open("file", v1.OpenMode{Read: true})
	require.ErrorIs(t, err, &v1.Error{Code: v1.PathNotFound})
	h, err := open("file", writing)
	require.NoError(t, err)
	require.True(t, h.Changed())
	_, err = h.WriteAt([]byte("text"), 2)
	require.NoError(t, err)
	_, err = h.ReadAt(make([]byte, 1), 0)
	require.Error(t, err)
	_, err = h.WriteAt([]byte("x"), -1)
	require.Error(t, err)
	require.NoError(t, h.Close())
	got, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.Equal(t, "\x00\x00text", string(got))
	_, err = open("file", v1.OpenMode{Write: true, Create: true, Exclusive: true})
	require.ErrorIs(t, err, &v1.Error{Code: v1.FileExists})
	h, err = open("file", writing)
	require.NoError(t, err)
	require.False(t, h.Changed())
	require.NoError(t, h.Close())
	h, err = open("file", v1.OpenMode{Write: true, Read: true, Truncate: true})
	require.NoError(t, err)
	require.True(t, h.Changed())
	_, err = h.ReadAt(make([]byte, 1), 0)
	require.Equal(t, io.EOF, err)
	require.NoError(t, h.Close())
	require.NoError(t, os.Symlink("made", filepath.Join(dir, "link")))
	h, err = open("link", writing)
	require.NoError(t, err, "a link to a missing file in the volume")
	require.NoError(t, h.Close())
	require.FileExists(t, filepath.Join(dir, "made"))
	require.NoError(t, os.Symlink("/tmp/made-outside", filepath.Join(dir, "out")))
	_, err = open("out", writing)
	require.Equal(t, v1.ErrInvalidPath, err)
	require.NoFileExists(t, "/tmp/made-outside")
}

// TestInPlaceCountsUsage compares the usage after each operation with a scan.
func TestInPlaceCountsUsage(t *testing.T) {
	m, _ := newInPlace(t)
	check := func(what string) {
		t.Helper()
		used := m.Used(ownVolume).Bytes
		scanned, err := m.Scan(t.Context(), ownVolume)
		require.NoError(t, err)
		require.Equal(t, scanned.Bytes, used, what)
	}
	write := func(p string, size int, mode v1.OpenMode) {
		t.Helper()
		h, err := m.OpenFile(t.Context(), ownVolume, p, mode)
		require.NoError(t, err)
		for at := 0; at < size; at += 100_000 {
			_, err = h.WriteAt(make([]byte, min(100_000, size-at)), int64(at))
			require.NoError(t, err)
		}
		require.NoError(t, h.Close())
		check(p)
	}
	write("empty", 0, writing)
	write("small", 10, writing)
	write("large", 5_000_000, writing)
	write("large", 100, writing)
	write("large", 6_000_000, writing)
	write("large", 3_000_000, v1.OpenMode{Write: true, Truncate: true})
	write("large", 500_000, v1.OpenMode{Write: true, Append: true})
	size := int64(1000)
	require.NoError(t, setAttributes(t, m, "large", v1.FileAttributes{Size: &size}))
	check("truncate")
	require.NoError(t, m.MakeFolder(t.Context(), ownVolume, "folder"))
	check("mkdir")
	require.NoError(t, m.Symlink(t.Context(), ownVolume, "small", "link"))
	check("symlink")
	require.NoError(t, m.MoveOver(t.Context(), ownVolume, "large", "small"))
	check("rename")
	h, err := m.OpenFile(t.Context(), ownVolume, "small", v1.OpenMode{Read: true})
	require.NoError(t, err)
	require.NoError(t, m.RemoveFile(t.Context(), ownVolume, "small"))
	held, err := m.Scan(t.Context(), ownVolume)
	require.NoError(t, err)
	require.NoError(t, h.Close())
	freed, err := m.Scan(t.Context(), ownVolume)
	require.NoError(t, err)
	require.Greater(t, held.Bytes, freed.Bytes, "a removed file counts while it is open")
	require.NoError(t, m.RemoveFile(t.Context(), ownVolume, "link"))
	require.NoError(t, m.RemoveFolder(t.Context(), ownVolume, "folder"))
	check("remove")
}

func TestInPlaceAttributesOfRoot(t *testing.T) {
	m, dir := newInPlace(t)
	mode := fs.FileMode(0o777)
	require.Equal(t, v1.ErrInvalidPath, setAttributes(t, m, ".", v1.FileAttributes{Mode: &mode}))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	mode = 0o700
	require.NoError(t, setAttributes(t, m, ".", v1.FileAttributes{Mode: &mode}))
}

// TestInPlaceAfterRestore writes to a file of the tree before a restore, which is gone:
// the write is refused, and the file of the restored tree can be opened.
func TestInPlaceAfterRestore(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "file", "of the backup")
	a, _ := takeBackup(t, b)
	h, err := b.OpenFile(t.Context(), id, "file", v1.OpenMode{Read: true, Write: true})
	require.NoError(t, err)
	_, err = h.WriteAt([]byte("changed"), 0)
	require.NoError(t, err)
	var meanwhile error
	r := io.MultiReader(calling{func() { _, meanwhile = h.WriteAt([]byte("lost"), 0) }}, bytes.NewReader(a.data))
	require.NoError(t, b.Restore(t.Context(), id, r, a.SnapshotArchive, v1.RestoreOptions{Mode: v1.RestoreReplace}))
	require.Equal(t, v1.ErrVolumeRestoring, meanwhile)
	used := b.Used(id).Bytes
	_, err = h.WriteAt([]byte("lost"), 0)
	require.ErrorIs(t, err, &v1.Error{Code: v1.VolumeRestoring})
	require.NoError(t, h.Close())
	require.Equal(t, used, b.Used(id).Bytes, "the old tree does not count")
	got, err := os.ReadFile(filepath.Join(b.dir, "file"))
	require.NoError(t, err)
	require.Equal(t, "of the backup", string(got))
	h, err = b.OpenFile(t.Context(), id, "file", writing)
	require.NoError(t, err)
	_, err = h.WriteAt([]byte("OF"), 0)
	require.NoError(t, err)
	require.NoError(t, h.Close())
}

// TestInPlaceDuringATransfer: what a transfer has reserved is read, and not changed, also by what was open before.
func TestInPlaceDuringATransfer(t *testing.T) {
	opt, reserved := options(), error(nil)
	opt.Reserved = func(string) error { return reserved }
	b := newBox(t, opt)
	b.put(t, "file", "before")
	h, err := b.OpenFile(t.Context(), id, "file", v1.OpenMode{Read: true, Write: true})
	require.NoError(t, err)
	reserved = v1.ErrTransferring
	size := int64(1)
	_, truncated := b.SetAttributes(t.Context(), id, "file", v1.FileAttributes{Size: &size})
	_, written := h.WriteAt([]byte("changed"), 0)
	_, opened := b.OpenFile(t.Context(), id, "new", writing)
	for what, err := range map[string]error{
		"write": written, "open": opened, "truncate": truncated, "mkdir": b.MakeFolder(t.Context(), id, "folder"),
		"remove": b.RemoveFile(t.Context(), id, "file"), "move": b.Move(t.Context(), id, "file", "other"),
		"link": b.Symlink(t.Context(), id, "file", "link"),
	} {
		require.ErrorIs(t, err, v1.ErrTransferring, what)
	}
	text := make([]byte, 6)
	_, err = h.ReadAt(text, 0)
	require.NoError(t, err)
	require.Equal(t, "before", string(text))
	reserved = nil
	_, err = h.WriteAt([]byte("B"), 0)
	require.NoError(t, err)
	require.NoError(t, h.Close())
	require.Equal(t, "Before", b.get(t, "file"))
}

// TestInPlaceSeveralHandles: what several handles of a file shrink and write is counted at once or
// by the next scan, and never as free space that there is not.
func TestInPlaceSeveralHandles(t *testing.T) {
	m, dir := newInPlace(t)
	const size = 8 << 20
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, size), 0o600))
	m.SetLimit(ownVolume, 4*size, v1.Usage{})
	before, err := m.Scan(t.Context(), ownVolume)
	require.NoError(t, err)
	open := func(p string, mode v1.OpenMode) v1.FileHandle {
		h, err := m.OpenFile(t.Context(), ownVolume, p, mode)
		require.NoError(t, err)
		return h
	}
	zero := int64(0)
	var handles []v1.FileHandle
	for range 10 {
		handles = append(handles, open("large", v1.OpenMode{Write: true}))
	}
	for range handles {
		_, err = m.SetAttributes(t.Context(), ownVolume, "large", v1.FileAttributes{Size: &zero})
		require.NoError(t, err)
	}
	require.InDelta(t, before.Bytes-size, m.Used(ownVolume).Bytes, 32<<10, "freed space counts once")
	for at := int64(0); at < size; at += 64 << 10 {
		_, err = handles[1].WriteAt(make([]byte, 64<<10), at)
		require.NoError(t, err)
	}
	other := open("other", writing)
	_, err = other.WriteAt(make([]byte, 4*size), 0)
	require.ErrorIs(t, err, v1.ErrSizeLimit, "content of another handle counts")
	for _, h := range append(handles, other) {
		require.NoError(t, h.Close())
	}
	require.GreaterOrEqual(t, m.Used(ownVolume).Bytes, before.Bytes-32<<10)
	after, err := m.Scan(t.Context(), ownVolume)
	require.NoError(t, err)
	require.InDelta(t, before.Bytes, after.Bytes, 32<<10)
}

// A write at a huge offset is over the limit, and reserves nothing.
func TestInPlaceHugeOffset(t *testing.T) {
	m, _ := newInPlace(t)
	m.SetLimit(ownVolume, 1<<20, v1.Usage{})
	_, err := m.Scan(t.Context(), ownVolume)
	require.NoError(t, err)
	for _, create := range []string{"new", "old"} {
		if create == "old" {
			h, err := m.OpenFile(t.Context(), ownVolume, "old", writing)
			require.NoError(t, err)
			require.NoError(t, h.Close())
		}
		far, err := m.OpenFile(t.Context(), ownVolume, create, writing)
		require.NoError(t, err)
		_, err = far.WriteAt([]byte{1}, math.MaxInt64-1)
		require.ErrorIs(t, err, v1.ErrSizeLimit)
		near, err := m.OpenFile(t.Context(), ownVolume, "near", writing)
		require.NoError(t, err)
		_, err = near.WriteAt(make([]byte, 2<<20), 0)
		require.ErrorIs(t, err, v1.ErrSizeLimit)
		require.NoError(t, near.Close())
		require.NoError(t, far.Close())
	}
}
