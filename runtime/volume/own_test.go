package volume_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// theServer is the account that the tests give volumes to.
var theServer = volume.Accounts{UID: 988, GID: 989}

// disown puts into a volume what an installer leaves that is root.
func disown(t *testing.T, b box) (paths []string) {
	t.Helper()
	b.put(t, "game/data/world", "x")
	b.put(t, "run.sh", "x")
	b.put(t, "unpacked", "x")
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "run.sh"), 0o600))
	require.NoError(t, os.Lchown(filepath.Join(b.dir, "unpacked"), 1001, 127)) // as tar keeps it
	require.NoError(t, os.Symlink(filepath.Join(b.outside, "folder"), filepath.Join(b.dir, "link")))
	require.NoError(t, os.Symlink(filepath.Join(b.outside, "secret"), filepath.Join(b.dir, "game/link")))
	require.NoError(t, os.Link(filepath.Join(b.dir, "run.sh"), filepath.Join(b.dir, "game/hard")))
	require.NoError(t, unix.Mkfifo(filepath.Join(b.dir, "fifo"), 0o600))
	return []string{"", "game", "game/data", "game/data/world", "run.sh", "unpacked", "link", "game/link", "game/hard", "fifo"}
}

func requireOutsideUnchanged(t *testing.T, b box) {
	t.Helper()
	for _, p := range []string{"", "secret", "folder", "folder/secret"} {
		info, err := os.Lstat(filepath.Join(b.outside, p))
		require.NoError(t, err)
		require.Zero(t, info.Sys().(*syscall.Stat_t).Uid, p)
	}
}

// TestOwn requires that everything in a volume is given to the server, links themselves and nothing that
// they lead to, and that nothing is changed again.
func TestOwn(t *testing.T) {
	b := newBox(t, options())
	paths := disown(t, b)
	left, err := b.Own(t.Context(), id, theServer)
	require.NoError(t, err)
	require.Zero(t, left)
	changed := map[string]syscall.Timespec{}
	for _, p := range paths {
		require.Equal(t, []uint32{988, 989}, ownerOf(t, b, p), p)
		info, err := os.Lstat(filepath.Join(b.dir, p))
		require.NoError(t, err)
		changed[p] = info.Sys().(*syscall.Stat_t).Ctim
	}
	requireOutsideUnchanged(t, b)
	require.NoError(t, os.Lchown(filepath.Join(b.dir, "game"), 988, 5)) // of the server, in another group
	delete(changed, "game")
	left, err = b.Own(t.Context(), id, theServer)
	require.NoError(t, err)
	require.Zero(t, left)
	for p, before := range changed {
		info, err := os.Lstat(filepath.Join(b.dir, p))
		require.NoError(t, err)
		require.Equal(t, before, info.Sys().(*syscall.Stat_t).Ctim, p)
	}
	require.Equal(t, []uint32{988, 5}, ownerOf(t, b, "game"))
}

// TestOwnLeavesOthers requires that entries of other servers stay theirs, and count if the new owner cannot
// write them.
func TestOwnLeavesOthers(t *testing.T) {
	b := newBox(t, options())
	for name, mode := range map[string]fs.FileMode{"a": 0o644, "b/group": 0o664, "b/all": 0o646, "b/own": 0o600} {
		b.put(t, name, "x")
		require.NoError(t, os.Chmod(filepath.Join(b.dir, name), mode))
		require.NoError(t, os.Lchown(filepath.Join(b.dir, name), 1000, 989))
	}
	require.NoError(t, os.Symlink("a", filepath.Join(b.dir, "link")))
	require.NoError(t, os.Lchown(filepath.Join(b.dir, "link"), 1000, 1000))
	to := theServer
	to.Others = []int{1000}
	left, err := b.Own(t.Context(), id, to)
	require.NoError(t, err)
	require.Equal(t, 2, left.Entries, "a and b/own")
	require.Equal(t, 1000, left.UID)
	require.Contains(t, []string{"a", "b/own"}, left.Path)
	require.NoError(t, left.Err)
	require.Equal(t, []uint32{1000, 989}, ownerOf(t, b, "a"))
	require.Equal(t, []uint32{988, 989}, ownerOf(t, b, "b"))

	require.NoError(t, os.Lchown(b.dir, 1000, 1000))
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "b")))
	require.NoError(t, os.Remove(filepath.Join(b.dir, "a")))
	left, err = b.Own(t.Context(), id, to)
	require.NoError(t, err)
	require.Equal(t, volume.NotOwned{Entries: 1, UID: 1000}, left, "the volume's own folder")
}

// TestOwnNotMounts requires that nothing is changed that is mounted in a volume: another file system, a folder
// and a file of the same one.
func TestOwnNotMounts(t *testing.T) {
	b := newBox(t, options())
	for _, p := range []string{"a/disk/x", "a/bound/x", "a/file", "z"} {
		b.put(t, p, "x")
	}
	require.NoError(t, unix.Mount("berth-test", filepath.Join(b.dir, "a/disk"), "tmpfs", 0, "size=1m"))
	require.NoError(t, unix.Mount(filepath.Join(b.outside, "folder"), filepath.Join(b.dir, "a/bound"), "", unix.MS_BIND, ""))
	require.NoError(t, unix.Mount(filepath.Join(b.outside, "secret"), filepath.Join(b.dir, "a/file"), "", unix.MS_BIND, ""))
	t.Cleanup(func() {
		for _, p := range []string{"a/disk", "a/bound", "a/file"} {
			require.NoError(t, unix.Unmount(filepath.Join(b.dir, p), 0))
		}
	})
	b.put(t, "a/disk/root", "x")
	left, err := b.Own(t.Context(), id, theServer)
	require.NoError(t, err)
	require.Zero(t, left)
	requireOutsideUnchanged(t, b)
	for _, p := range []string{"a/disk", "a/disk/root"} {
		require.Equal(t, []uint32{0, 0}, ownerOf(t, b, p), p)
	}
	for _, p := range []string{"a", "z"} {
		require.Equal(t, []uint32{988, 989}, ownerOf(t, b, p), p)
	}
}

// TestOwnWhileTheTreeChanges requires that a container which replaces a folder and a file by links leads
// nothing outside of the volume to be changed.
func TestOwnWhileTheTreeChanges(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "folder/x", "x")
	b.put(t, "file", "x")
	require.NoError(t, os.Symlink(filepath.Join(b.outside, "folder"), filepath.Join(b.dir, "folder-link")))
	require.NoError(t, os.Symlink(filepath.Join(b.outside, "secret"), filepath.Join(b.dir, "file-link")))
	dir, err := os.Open(b.dir)
	require.NoError(t, err)
	defer dir.Close()
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	swap := func(name string) error {
		return unix.Renameat2(int(dir.Fd()), name, int(dir.Fd()), name+"-link", unix.RENAME_EXCHANGE)
	}
	var failed error
	go func() {
		defer close(ended)
		for ctx.Err() == nil && failed == nil {
			failed = errors.Join(swap("folder"), swap("file"))
		}
	}()
	for i := range 2000 { // back and forth, so that each walk has work
		to := theServer
		to.UID += i % 2
		_, err := b.Own(t.Context(), id, to)
		require.NoError(t, err)
	}
	cancel()
	<-ended
	require.NoError(t, failed)
	requireOutsideUnchanged(t, b)
}

// TestOwnIsBounded requires that a walk ends ahead of a tree that grows or is too deep, says so, and that one
// which is interrupted continues.
func TestOwnIsBounded(t *testing.T) {
	opt := options()
	opt.Limits.ScanSteps = 50
	b := newBox(t, opt)
	for i := range 60 {
		b.put(t, fmt.Sprintf("f%d", i), "x")
	}
	left, err := b.Own(t.Context(), id, theServer)
	require.NoError(t, err)
	require.Equal(t, 1, left.Entries)
	require.ErrorContains(t, left.Err, "too many files")

	b = newBox(t, options())
	b.put(t, strings.Repeat("d/", 300)+"f", "x")
	left, err = b.Own(t.Context(), id, theServer)
	require.NoError(t, err)
	require.ErrorContains(t, left.Err, "nested too deeply")

	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Own(interrupted, id, theServer)
	require.ErrorIs(t, err, context.Canceled)

	_, err = b.Own(t.Context(), "missing", theServer)
	require.ErrorIs(t, err, v1.ErrDirectoryMissing)
}

// TestOwnGoesOn requires that what cannot be given is counted, and that the rest is given.
func TestOwnGoesOn(t *testing.T) {
	b := newBox(t, options())
	b.put(t, "a", "x")
	b.put(t, "immutable", "x")
	b.put(t, "z", "x")
	setImmutable := func(flags int) {
		f, err := os.Open(filepath.Join(b.dir, "immutable"))
		require.NoError(t, err)
		defer f.Close()
		require.NoError(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags))
	}
	setImmutable(0x10)
	defer setImmutable(0)
	left, err := b.Own(t.Context(), id, theServer)
	require.NoError(t, err)
	require.Equal(t, []any{1, "immutable", 0}, []any{left.Entries, left.Path, left.UID})
	require.ErrorIs(t, left.Err, unix.EPERM)
	for _, p := range []string{"a", "z"} {
		require.Equal(t, []uint32{988, 989}, ownerOf(t, b, p), p)
	}
}
