package kv

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of its own.
func smallDisk(t *testing.T, size string) string {
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size))
	// Detached: a test that fails may have left a database open in it.
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fill takes all the space that is left.
func fill(t *testing.T, dir string) {
	f, err := os.Create(filepath.Join(dir, "filler"))
	require.NoError(t, err)
	defer f.Close()
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, unix.ENOSPC)
}

// requireQuiet waits until Badger has written the tables of the last updates and
// nothing is to be merged, and stops the compactor.
func requireQuiet(t *testing.T, db *DB) {
	require.Eventually(t, func() bool {
		logs, err := filepath.Glob(filepath.Join(db.disk.dir, "*.mem"))
		waiting := newTables(db) >= compactAt && db.disk.requireFree(mergeSpace(db)) == nil
		return err == nil && len(logs) == 1 && !waiting
	}, time.Minute, 10*time.Millisecond)
	db.compactor.close()
	db.compactor = nil
}

func TestFullDiskUnderLoadKillsNothing(t *testing.T) {
	disk := smallDisk(t, "96m")
	dir := filepath.Join(disk, "store")
	db, err := start(dir, Options{MinFree: 32 << 20})
	require.NoError(t, err)
	kept := 0
	value := noise()
	for err == nil { // until the database itself has filled the disk
		value = value[1000:] + value[:1000]
		if err = put(db, "k/"+strconv.Itoa(kept), value); err == nil {
			kept++
		}
	}
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorIs(t, err, ErrDiskFull)
	require.Greater(t, kept*len(value), memTableSize, "a log was used up, and is a table")
	requireQuiet(t, db)
	fill(t, disk)
	require.NoError(t, db.Close(), "the reserve has space for the last table")

	fill(t, disk)
	_, err = Open(dir, Options{MinFree: 32 << 20})
	require.ErrorIs(t, err, ErrDiskFull, "a start without any space is refused, not killed")
	require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
	db, err = start(dir, Options{MinFree: 1 << 20})
	require.NoError(t, err)
	require.Len(t, keys(t, db, "k/"), kept)
	require.NoError(t, db.Close())
}

// TestNewLogsAreAllocated: a log has its blocks before the next commit, even if Badger began it
// while the clock of the file system stood still.
func TestNewLogsAreAllocated(t *testing.T) {
	d := &disk{dir: t.TempDir()}
	for i := range 50 {
		log := filepath.Join(d.dir, strconv.Itoa(i)+".mem")
		f, err := os.Create(log)
		require.NoError(t, err)
		require.NoError(t, errors.Join(f.Truncate(1<<16), f.Close()))
		require.NoError(t, d.allocate())
		var st unix.Stat_t
		require.NoError(t, unix.Stat(log, &st))
		require.EqualValues(t, 1<<16/512, st.Blocks, log)
	}
	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(d.dir, past, past))
	require.NoError(t, d.allocate())
	current, err := d.listing.current(d.dir)
	require.NoError(t, err)
	require.True(t, current, "a folder that does not change is not read again")
	info, err := os.Stat(d.dir)
	require.NoError(t, err)
	current, err = listing{changed: info.ModTime(), read: info.ModTime().Add(settled)}.current(d.dir)
	require.NoError(t, err)
	require.False(t, current, "it may have changed after it was read, at the same time of the clock")
}

// TestFullDiskAllowsSmallWritesAtAnyTime fills the disk after different parts of the
// log are used.
func TestFullDiskAllowsSmallWritesAtAnyTime(t *testing.T) {
	for _, written := range []int{1, 12, 19, 20, 24, 28, 29, 30, 45} { // some 270 KB each
		t.Run(strconv.Itoa(written), func(t *testing.T) {
			disk := smallDisk(t, "128m")
			db := openIn(t, filepath.Join(disk, "store"), Options{MinFree: 16 << 20})
			value := noise()
			for i := range written {
				value = value[1000:] + value[:1000]
				require.NoError(t, put(db, strconv.Itoa(i), value))
			}
			requireQuiet(t, db)
			fill(t, disk)
			require.ErrorIs(t, put(db, "none", "x"), ErrDiskFull)
			for i := range 3001 {
				require.NoError(t, update(db, endOfRun(i), true), "after %d", i)
			}
		})
	}
}

// logUsed returns how many bytes of the current log are used: the rest is zeros.
func logUsed(dir string) (int, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil || len(logs) == 0 {
		return 0, errors.Join(err, os.ErrNotExist)
	}
	text, err := os.ReadFile(slices.Max(logs))
	return len(bytes.TrimRight(text, "\x00")), err
}

func TestLogIsNeverFullerThanAccounted(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir, Options{})
	value := noise()
	for i := range 1200 {
		key := strconv.Itoa(i)
		require.NoError(t, update(db, endOfRun(i), false))
		require.NoError(t, put(db, key, value[:(i%7)*(i%11)*200]))
		require.NoError(t, remove(db, key))
		if i%40 != 0 {
			continue
		}
		used, err := logUsed(dir)
		require.NoError(t, err)
		require.LessOrEqual(t, used, int(db.disk.logged))
		require.Less(t, int(db.disk.logged), memTableSize)
	}
}
