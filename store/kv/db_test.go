package kv

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestCloseWithoutDisk: a database whose disk is gone is left open, and the next start finds
// what was committed.
func TestCloseWithoutDisk(t *testing.T) {
	dir := t.TempDir() + "/store"
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, put(db, "k/a", "x"))
	db.compactor.close()
	require.NoError(t, os.Rename(dir, dir+".gone"))
	require.ErrorIs(t, closeWithin(db.badger, 10*time.Millisecond), ErrFailed)
	require.NoError(t, os.Rename(dir+".gone", dir))

	var again *DB
	require.Eventually(t, func() bool { again, err = Open(dir, Options{}); return err == nil }, time.Minute, 10*time.Millisecond)
	require.Equal(t, []string{"k/a"}, keys(t, again, "k/"))
	require.NoError(t, again.Close())
}

// nextLog makes Badger's next log impossible, so that the commit that needs it fails.
func nextLog(t *testing.T, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	require.NoError(t, err)
	var n int
	_, err = fmt.Sscanf(filepath.Base(slices.Max(logs)), "%d.mem", &n)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.mem", n+1)), make([]byte, 100), 0o600))
}

// TestFailedCommit: after Badger has failed to commit nothing is written any more, and the next
// start finds all that was acknowledged.
func TestFailedCommit(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	nextLog(t, dir)
	require.NoError(t, db.Err())
	kept := 0
	for value := noise(); err == nil; value = value[1000:] + value[:1000] {
		if err = put(db, "k/"+strconv.Itoa(kept), value); err == nil {
			kept++
		}
	}
	<-db.Failed()
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorContains(t, err, "cannot create new mem table")
	require.NotErrorIs(t, err, ErrDiskFull)
	require.Equal(t, err, db.Err())
	require.Equal(t, err, db.Writable())
	require.Equal(t, err, put(db, "k/more", "x"))
	require.ErrorIs(t, db.View(func(tx *Txn) error { _, err := tx.Get("k/0"); return err }), ErrFailed, "Badger has no log")
	require.NoError(t, db.Close())
	require.Len(t, keys(t, openIn(t, dir, Options{}), "k/"), kept)
}

// TestNoViewsAfterFailedCommit: nobody sees what a commit that failed has left in Badger's memory.
func TestNoViewsAfterFailedCommit(t *testing.T) {
	db := openIn(t, t.TempDir(), Options{})
	require.NoError(t, put(db, "k/a", "x"))
	db.mu.Lock()
	db.fail(unix.EIO)
	db.mu.Unlock()
	require.ErrorIs(t, db.View(func(*Txn) error { return nil }), unix.EIO)
	require.ErrorIs(t, db.Backup(io.Discard), unix.EIO)
	b := db.Begin()
	defer b.Discard()
	require.ErrorIs(t, b.AddOnFullDisk(map[string][]byte{"k/c": nil}), unix.EIO)
}

// TestBackupIsOneState: updates that go on do not tear a backup.
func TestBackupIsOneState(t *testing.T) {
	db := openIn(t, t.TempDir(), Options{})
	both := func(i int) map[string][]byte {
		v := []byte(strconv.Itoa(i))
		return map[string][]byte{"a": v, "z": v}
	}
	require.NoError(t, update(db, both(0), false))
	for i := range 1000 {
		require.NoError(t, put(db, fmt.Sprintf("k/%04d", i), "x"))
	}
	stop, writer := make(chan struct{}), sync.WaitGroup{}
	writer.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
				require.NoError(t, update(db, both(i), false))
			}
		}
	})
	for range 5 {
		var backup bytes.Buffer
		require.NoError(t, db.Backup(&backup))
		dir := t.TempDir()
		require.NoError(t, Load(dir, &backup))
		loaded := openIn(t, dir, Options{})
		require.Equal(t, get(t, loaded, "a"), get(t, loaded, "z"))
	}
	close(stop)
	writer.Wait()
}
