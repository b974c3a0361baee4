package volume

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

func TestQuota(t *testing.T) {
	q := new(quota)
	require.NoError(t, q.Fits(1<<40), "without a limit everything fits")

	q.SetLimit(100, v1.Usage{Bytes: 60, Files: 3})
	require.Equal(t, v1.Usage{Bytes: 60, Files: 3}, q.Used())
	q.SetLimit(100, v1.Usage{Bytes: 5})
	require.Equal(t, int64(60), q.Used().Bytes, "the stored usage counts once")
	require.NoError(t, q.Fits(40))
	require.ErrorIs(t, q.Fits(41), v1.ErrSizeLimit)

	require.False(t, q.takeChanged())
	q.Add(-20)
	require.True(t, q.takeChanged())
	require.False(t, q.takeChanged(), "it is reported once")
	require.NoError(t, q.Fits(60))
	q.Add(-100)
	require.True(t, q.takeChanged())
	require.Zero(t, q.Used().Bytes, "it is never negative")
	q.SetUsed(v1.Usage{Bytes: 100, Files: 1}, "")
	require.ErrorIs(t, q.Fits(1), v1.ErrSizeLimit)
	q.SetLimit(-1, v1.Usage{})
	require.Zero(t, q.Limit())
	require.NoError(t, q.Fits(1))
	require.False(t, q.takeChanged(), "an Add is a change, a scan is none")
}

func TestReservation(t *testing.T) {
	q := new(quota)
	q.SetLimit(100, v1.Usage{Bytes: 50})
	first, second := &reservation{quota: q}, &reservation{quota: q, credit: 30}
	require.NoError(t, first.Grow(30))
	require.NoError(t, first.Grow(20))
	require.ErrorIs(t, first.Grow(1), v1.ErrSizeLimit)
	require.Equal(t, int64(50), first.Bytes())
	require.NoError(t, second.Grow(30), "it replaces as much")
	require.ErrorIs(t, second.Grow(31), v1.ErrSizeLimit)

	first.Release()
	first.Release()
	require.NoError(t, q.Fits(20))
	require.ErrorIs(t, q.Fits(21), v1.ErrSizeLimit, "the other one still holds its bytes")
	second.Release()
	require.NoError(t, q.Fits(50))
}

// A client names offsets and sizes up to 2^63-1.
func TestSumsDoNotOverflow(t *testing.T) {
	for _, limit := range []int64{0, 100, math.MaxInt64} {
		q := new(quota)
		q.SetLimit(limit, v1.Usage{Bytes: 50})
		first, second := &reservation{quota: q}, &reservation{quota: q}
		require.ErrorIs(t, first.Grow(math.MaxInt64), v1.ErrSizeLimit)
		require.Zero(t, first.Bytes())
		require.ErrorIs(t, q.Fits(math.MaxInt64), v1.ErrSizeLimit)
		if limit != 100 {
			require.NoError(t, first.Grow(1<<61))
			require.ErrorIs(t, second.Grow(1<<61), v1.ErrSizeLimit)
			require.ErrorIs(t, first.Grow(1<<61), v1.ErrSizeLimit)
		}
		q.SetLimit(100, v1.Usage{})
		q.Add(51)
		require.ErrorIs(t, q.Fits(1), v1.ErrSizeLimit)
		q.Add(-51)
		first.Release()
		require.NoError(t, q.Fits(50))
	}
}

// TestInodesAreLeftToTheStore on a file system that has few.
func TestInodesAreLeftToTheStore(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=1g,nr_inodes=%d", inodesReserve+2)))
	defer func() { require.NoError(t, unix.Unmount(dir, 0)) }()
	s, err := OpenSpace(dir, dir)
	require.NoError(t, err)
	take := func(name string) { require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600)) }
	take("one") // beside the folder itself
	require.NoError(t, s.Check())
	take("two")
	require.ErrorIs(t, s.Check(), v1.ErrDiskFull)
}

// TestSetHardLimit: to that of the volume, or it returns why it cannot.
func TestSetHardLimit(t *testing.T) {
	const id = "own"
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"), "which has no project quotas")
	defer func() { require.NoError(t, unix.Unmount(dir, 0)) }()
	m, err := New(dir, Options{UID: -1, GID: -1})
	require.NoError(t, err)
	require.NoError(t, m.Ensure(id))
	m.projects = &projects{base: dir, ids: map[string]uint32{id: firstProject}, limits: map[string]int64{id: 1 << 20}}
	m.of(id).quota.SetLimit(1<<20, v1.Usage{})
	require.NoError(t, m.SetHardLimit(id), "it has this one")
	m.of(id).quota.SetLimit(1<<21, v1.Usage{})
	require.ErrorContains(t, m.SetHardLimit(id), "volume own: hard limit: ")
}

func TestOnDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	size := func() int64 {
		info, err := os.Lstat(path)
		require.NoError(t, err)
		return onDisk(info)
	}
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.Equal(t, int64(blockBytes), size(), "an empty file takes an inode")
	require.NoError(t, os.WriteFile(path, make([]byte, 3*blockBytes), 0o600))
	require.GreaterOrEqual(t, size(), int64(3*blockBytes))
	require.NoError(t, os.Link(path, filepath.Join(dir, "other")))
	require.Zero(t, size(), "removing one of two links frees nothing")
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.GreaterOrEqual(t, inodeBytes(info), int64(3*blockBytes), "whatever its links")
	require.Equal(t, int64(2*blockBytes), roundUp(blockBytes+1))
}

// TestHardLinksBeyondTheFileSystem: ext4 has 65,000 names for a file, and an archive may have more.
func TestHardLinksBeyondTheFileSystem(t *testing.T) {
	err := refuse("a", &os.LinkError{Op: "link", Old: "a", New: "b", Err: syscall.EMLINK})
	var refusal *v1.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, v1.InvalidRequest, refusal.Code)
	require.Contains(t, refusal.Message, "as many hard links as its file system allows: a")
}
