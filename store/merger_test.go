package store

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mergeRoom is what a merge needs on the disk.
func mergeRoom(s *Store) (need uint64) {
	for _, l := range s.db.Levels() {
		need += uint64(l.Size)
	}
	return need + reserveSize
}

// newTables is how many tables nobody has merged yet.
func newTables(s *Store) int { return s.db.Levels()[0].NumTables }

func requireMerged(t *testing.T, s *Store) {
	t.Helper()
	require.Eventually(t, func() bool { return newTables(s) < compactAt }, time.Minute, 10*time.Millisecond)
}

func TestTablesAreMergedAsTheyAreWritten(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	script, most := noise(), 0
	for i := range 20 * memTableSize / len(script) {
		script = script[1000:] + script[:1000]
		require.NoError(t, createBig(s, "same", script), i)
		require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "same") }))
		most = max(most, newTables(s))
	}
	require.Greater(t, most, 1, "tables were written")
	require.Less(t, most, 15, "writes never waited for the merging")
	requireMerged(t, s)
	require.NoError(t, s.Close())
}

func TestTablesOfManyStartsAreMerged(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		s, err := Open(dir, Options{})
		require.NoError(t, err)
		require.NoError(t, createBig(s, strconv.Itoa(i), "x"))
		requireMerged(t, s)
		require.NoError(t, s.Close())
	}
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.View(func(tx *Tx) error {
		require.Len(t, Containers.IDs(tx), 10)
		return nil
	}))
	require.NoError(t, s.Close())
}

func TestUpdatesAreRefusedBeforeTheyWaitForAMerge(t *testing.T) {
	s := openIn(t, t.TempDir())
	s.compactor.close()
	away := filepath.Join(t.TempDir(), "away") // nothing can be merged until it is there
	s.compactor = newCompactor(s.db, &disk{dir: away}, s.log)
	script := noise()
	var err error
	for err == nil {
		script = script[1000:] + script[:1000]
		if err = createBig(s, "same", script); err == nil {
			err = s.Update(func(tx *Tx) error { return Containers.Purge(tx, "same") })
		}
	}
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorContains(t, err, "tables cannot be merged")
	require.GreaterOrEqual(t, newTables(s), refuseAt)
	require.Less(t, newTables(s), 15, "at which Badger would have a commit wait")
	require.Error(t, s.Writable())

	require.NoError(t, os.Mkdir(away, 0o700))
	require.Eventually(t, func() bool { return s.Writable() == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, create(s, "after"))
	requireMerged(t, s)
}

func TestTablesAreNotMergedWithoutRoom(t *testing.T) {
	disk := smallDisk(t, "112m")
	s, err := Open(disk+"/store", Options{})
	require.NoError(t, err)
	fill(t, disk)
	require.ErrorIs(t, s.disk.freeSpace(1), ErrDiskFull)
	require.NoError(t, s.disk.freeSpace(0))
	require.NoError(t, s.Close())
	require.NoError(t, unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	require.ErrorIs(t, s.disk.freeSpace(0), unix.EROFS)
}
