package kv

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCloseWithoutDisk: a database whose disk is gone is left open, and the next start finds
// what was committed.
func TestCloseWithoutDisk(t *testing.T) {
	dir := t.TempDir() + "/store"
	db, err := start(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, put(db, "k/a", "x"))
	db.compactor.close()
	require.NoError(t, os.Rename(dir, dir+".gone"))
	require.ErrorIs(t, closeWithin(db.badger, 10*time.Millisecond), ErrFailed)
	require.NoError(t, os.Rename(dir+".gone", dir))

	var again *DB
	require.Eventually(t, func() bool { again, err = start(dir, Options{}); return err == nil }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, []string{"k/a"}, keys(t, again, "k/"))
	require.NoError(t, again.Close())
	require.NoError(t, db.wal.close())
}
