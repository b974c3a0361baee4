package kv

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// failing lets the next *n commits fail before they took effect.
func failing(n *int) func(func() error) error {
	return func(commit func() error) error {
		if *n--; *n < 0 {
			return commit()
		}
		return unix.EIO
	}
}

func TestViewsWaitWhileBadgerIsOpenedAgain(t *testing.T) {
	n, checked := 0, 0
	db := openIn(t, t.TempDir(), Options{
		Commit: failing(&n),
		Check:  func(*Txn) error { checked++; return nil },
	})
	require.NoError(t, put(db, "k/a", "x"))
	hold, held := make(chan struct{}), make(chan struct{})
	var views sync.WaitGroup
	views.Go(func() {
		require.NoError(t, db.View(func(tx *Txn) error {
			close(held)
			<-hold
			_, err := tx.Get("k/a")
			require.NoError(t, err, "the state at its begin")
			_, err = tx.Get("k/b")
			require.ErrorIs(t, err, ErrNotFound)
			return nil
		}))
	})
	<-held
	n = 1
	views.Go(func() { require.NoError(t, put(db, "k/b", "x")) })
	require.Eventually(t, func() bool { db.mu.RLock(); defer db.mu.RUnlock(); return db.badger == nil }, time.Minute, time.Millisecond)
	views.Go(func() { require.NotEmpty(t, keys(t, db, "k/"), "it waits") })
	close(hold)
	views.Wait()
	require.Equal(t, []string{"k/a", "k/b"}, keys(t, db, "k/"))
	require.Equal(t, 1, checked)
}

func TestWritesAreRefusedUntilRepair(t *testing.T) {
	n := 0
	db := openIn(t, t.TempDir(), Options{Commit: failing(&n)})
	require.NoError(t, put(db, "k/a", "x"))
	n = 2
	err := put(db, "k/b", "x")
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorIs(t, err, unix.EIO)
	require.Equal(t, err, db.Writable())
	require.True(t, db.NeedsRepair())
	require.ErrorIs(t, db.Repair(func(*Txn) error { return unix.EBADF }), unix.EBADF)
	require.Error(t, db.Writable())
	require.NoError(t, db.Repair(func(tx *Txn) error { _, err := tx.Get("k/a"); return err }))
	require.NoError(t, db.Writable())
	require.NoError(t, put(db, "k/c", "x"))
	require.Equal(t, []string{"k/a", "k/c"}, keys(t, db, "k/"))
}
