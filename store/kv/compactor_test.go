package kv

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func requireMerged(t *testing.T, db *DB) {
	t.Helper()
	require.NoError(t, db.compactor.merge(compactAt))
	require.Less(t, db.compactor.newTables(), compactAt)
}

func TestTablesAreMergedAsTheyAreWritten(t *testing.T) {
	db, err := Open(smallDisk(t, "512m"), Options{})
	require.NoError(t, err)
	value, most := noise(), 0
	for i := range 20 * memTableSize / len(value) {
		value = value[1000:] + value[:1000]
		require.NoError(t, put(db, "same", value), i)
		require.NoError(t, remove(db, "same"))
		most = max(most, db.compactor.newTables())
	}
	require.Greater(t, most, 1, "tables were written")
	require.Less(t, most, 15, "writes never waited for a merge")
	requireMerged(t, db)
	require.NoError(t, db.Close())
}

func TestTablesOfManyStartsAreMerged(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		db, err := Open(dir, Options{})
		require.NoError(t, err)
		require.NoError(t, put(db, "k/"+strconv.Itoa(i), "x"))
		require.Eventually(t, func() bool { return db.compactor.newTables() < compactAt }, time.Minute, 10*time.Millisecond)
		require.NoError(t, db.Close())
	}
	require.Len(t, keys(t, openIn(t, dir, Options{}), "k/"), 10)
}

func TestWritesAreRefusedInsteadOfBlockedByMerges(t *testing.T) {
	db := openIn(t, smallDisk(t, "512m"), Options{})
	db.compactor.close()
	away := filepath.Join(t.TempDir(), "away") // nothing can be merged until it exists
	db.compactor = newCompactor(db.badger, &disk{dir: away}, db.log)
	value := noise()
	var err error
	for err == nil {
		value = value[1000:] + value[:1000]
		if err = put(db, "same", value); err == nil {
			err = remove(db, "same")
		}
	}
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorContains(t, err, "tables cannot be merged")
	require.GreaterOrEqual(t, db.compactor.newTables(), refuseAt)
	require.Less(t, db.compactor.newTables(), 15, "at which Badger would make a commit wait")
	require.Error(t, db.Writable())

	require.NoError(t, os.Mkdir(away, 0o700))
	require.Eventually(t, func() bool { return db.Writable() == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, put(db, "after", "x"))
	requireMerged(t, db)
}

func TestTablesAreNotMergedWithoutFreeSpace(t *testing.T) {
	disk := smallDisk(t, "112m")
	db, err := Open(disk+"/store", Options{})
	require.NoError(t, err)
	fill(t, disk)
	require.ErrorIs(t, db.disk.requireFree(1), ErrDiskFull)
	require.NoError(t, db.disk.requireFree(0))
	require.NoError(t, db.Close())
	require.NoError(t, unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	require.ErrorIs(t, db.disk.requireFree(0), unix.EROFS)
}
