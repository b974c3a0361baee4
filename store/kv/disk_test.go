package kv

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
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

// fillBut takes all the space but so many bytes.
func fillBut(t *testing.T, dir string, rest int64) {
	fill(t, dir)
	filler := filepath.Join(dir, "filler")
	st, err := os.Stat(filler)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(filler, st.Size()-rest))
}

// requireQuiet waits until Badger has written the tables of the last updates, merges them, and
// stops the compactor.
func requireQuiet(t *testing.T, db *DB) {
	require.Eventually(t, func() bool {
		logs, err := filepath.Glob(filepath.Join(db.disk.dir, "*.mem"))
		return err == nil && len(logs) == 1
	}, time.Minute, 10*time.Millisecond)
	if err := db.compactor.merge(compactAt); err != nil {
		require.ErrorIs(t, err, ErrDiskFull)
	}
	db.compactor.close()
	db.compactor = nil
}

func TestFullDiskUnderLoadKillsNothing(t *testing.T) {
	disk := smallDisk(t, "96m")
	dir := filepath.Join(disk, "store")
	db, err := Open(dir, Options{MinFree: 32 << 20})
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
	db, err = Open(dir, Options{MinFree: 1 << 20})
	require.NoError(t, err)
	require.Len(t, keys(t, db, "k/"), kept)
	require.NoError(t, db.Close())
}

// TestNewLogsAreAllocated: a log has its blocks before the next commit.
func TestNewLogsAreAllocated(t *testing.T) {
	d := &disk{dir: t.TempDir()}
	for i := range 3 {
		log := filepath.Join(d.dir, strconv.Itoa(i)+".mem")
		f, err := os.Create(log)
		require.NoError(t, err)
		require.NoError(t, errors.Join(f.Truncate(1<<16), f.Close()))
		require.NoError(t, d.allocate())
		var st unix.Stat_t
		require.NoError(t, unix.Stat(log, &st))
		require.EqualValues(t, 1<<16/512, st.Blocks, log)
	}
}

// TestFullDiskAllowsSmallWritesAtAnyTime fills the disk after different parts of the
// log are used: small writes are allowed as long as they fit into the rest, and then refused.
func TestFullDiskAllowsSmallWritesAtAnyTime(t *testing.T) {
	for _, written := range []int{1, 12, 19, 24, 28, 29, 30, 45} { // some 270 KB each
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
			used := written * len(value) % memTableSize
			var err error
			n := 0
			for ; err == nil; n++ {
				err = update(db, endOfRun(n), true)
			}
			require.ErrorIs(t, err, ErrDiskFull)
			require.Greater(t, n, (memTableSize/64*63-used)/1000-100, "each takes less than 1,000 bytes")
			require.NoError(t, db.Err())
			require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
			require.NoError(t, put(db, "after", "x"))
		})
	}
}

// TestNoFilesLeft: a disk that has space, and no place for another file, is full.
func TestNoFilesLeft(t *testing.T) {
	disk := smallDisk(t, "256m,nr_inodes=200")
	db := openIn(t, filepath.Join(disk, "store"), Options{MinFree: 1 << 20})
	require.NoError(t, put(db, "before", "x"))
	for i := 0; ; i++ {
		if err := os.WriteFile(filepath.Join(disk, strconv.Itoa(i)), nil, 0o600); err != nil {
			require.ErrorIs(t, err, unix.ENOSPC)
			break
		}
	}
	require.ErrorIs(t, put(db, "none", "x"), ErrDiskFull)
	require.NoError(t, update(db, endOfRun(1), true))
	for i := range 100 {
		require.NoError(t, os.Remove(filepath.Join(disk, strconv.Itoa(i))))
	}
	require.NoError(t, put(db, "after", "x"))
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

// TestLogIsNeverFullerThanAccounted: neither has a log more bytes than are accounted for, nor does
// Badger begin another one, for what it keeps in memory, before they are memTableSize.
func TestLogIsNeverFullerThanAccounted(t *testing.T) {
	dir := smallDisk(t, "512m")
	db := openIn(t, dir, Options{})
	value := noise()
	most := int64(0)
	for i := range 3000 {
		key := strconv.Itoa(i)
		before := db.disk.logged
		require.NoError(t, update(db, endOfRun(i), false))
		require.NoError(t, put(db, key, value[:(i%7)*(i%11)*200]))
		require.NoError(t, remove(db, key))
		if db.disk.logged < before {
			require.Greater(t, before, int64(memTableSize), "another log")
			most = max(most, before)
		}
		if i%40 != 0 {
			continue
		}
		used, err := logUsed(dir)
		require.NoError(t, err)
		require.LessOrEqual(t, used, int(db.disk.logged))
	}
	require.NotZero(t, most)
	t.Log(most-memTableSize, "bytes of", memTableSize, "were accounted for and not used")
}

// TestFullDiskAllowsMustUpdateAfterAKill: the reserve, which an open uses, is there again before the first
// commit that needs it.
func TestFullDiskAllowsMustUpdateAfterAKill(t *testing.T) {
	disk := smallDisk(t, "128m")
	dir, killed := filepath.Join(disk, "store"), filepath.Join(disk, "killed")
	db, err := Open(dir, Options{MinFree: 16 << 20})
	require.NoError(t, err)
	require.NoError(t, put(db, "a", "x"))
	require.NoError(t, os.Mkdir(killed, 0o700))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries { // as a kill leaves them
		require.NoError(t, exec.Command("cp", "--sparse=always", filepath.Join(dir, e.Name()), killed).Run())
		if isLog(e.Name()) {
			require.NoError(t, allocateFile(filepath.Join(killed, e.Name())))
		}
	}
	require.NoError(t, db.Close())
	require.NoError(t, os.RemoveAll(dir))
	fillBut(t, disk, reserveSize)
	after := openIn(t, killed, Options{MinFree: 16 << 20})
	requireQuiet(t, after)
	require.ErrorIs(t, put(after, "none", "x"), ErrDiskFull)
	require.NoError(t, update(after, endOfRun(1), true))
}
