package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
)

// writeOne stores a value with Write, and reports whether it is durable.
func writeOne(t *testing.T, db *DB, key, value string) (durable bool) {
	t.Helper()
	b := db.Begin()
	defer b.Discard()
	require.NoError(t, b.Add(map[string][]byte{key: []byte(value)}, false))
	durable, err := b.Write(func() {})
	require.NoError(t, err)
	db.Rotate()
	return durable
}

// syncAll makes durable what Write has stored.
func syncAll(db *DB) error {
	b := db.Begin()
	defer b.Discard()
	return b.Commit(func() {})
}

// TestWriteIsSyncedLater: what Write stores is with the kernel, and on the disk after the next
// Commit. The kernel may flush at any time, so only one of a hundred must be seen before.
func TestWriteIsSyncedLater(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir, Options{})
	unflushed := 0
	for i := 0; i < 3 || unflushed == 0 && i < 100; i++ {
		require.False(t, writeOne(t, db, fmt.Sprint("k/", i, "a"), "value"))
		require.False(t, writeOne(t, db, fmt.Sprint("k/", i, "b"), "value"))
		require.True(t, db.Unsynced())
		unflushed += dirty(t, dir)
		require.NoError(t, syncAll(db))
		require.False(t, db.Unsynced())
		require.Zero(t, dirty(t, dir))
	}
	require.Positive(t, unflushed, "Write has flushed")
}

// TestWriteIsStoredAgain loses what Write has stored in the commit that should make it durable.
func TestWriteIsStoredAgain(t *testing.T) {
	var db *DB
	fail := false
	db = openIn(t, t.TempDir(), Options{Commit: func(commit func() error) error {
		if !fail {
			return commit()
		}
		fail = false
		return errors.Join(db.badger.Update(func(txn *badger.Txn) error { return txn.Delete([]byte("k/lost")) }), errors.New("no disk"))
	}})
	require.False(t, writeOne(t, db, "k/lost", "value"))
	fail = true
	require.NoError(t, syncAll(db))
	require.Equal(t, []string{"k/lost"}, keys(t, db, "k/"))
	require.False(t, db.Unsynced())
}

// TestWriteSyncsBeforeAnotherLog: in the second part of a log each Write is durable, since a
// later Commit would sync the next log only.
func TestWriteSyncsBeforeAnotherLog(t *testing.T) {
	db := openIn(t, t.TempDir(), Options{})
	logs, durable := 0, 0
	value := noise()
	for i := range 60 { // some 270 KB each
		before := db.disk.logged
		value = value[1000:] + value[:1000]
		switch {
		case writeOne(t, db, fmt.Sprint(i), value):
			durable++
			require.False(t, db.Unsynced())
		case db.disk.logged < before:
			require.Fail(t, "a log began after a write that was not synced")
		}
		if db.disk.logged < before {
			logs++
		}
	}
	require.Positive(t, durable)
	require.Positive(t, logs)
}

// TestNewLogIsAllocated: a log is found although the directory was listed before, even if it
// was made within the step of the kernel's clock in which the directory was listed.
func TestNewLogIsAllocated(t *testing.T) {
	for _, age := range []time.Duration{0, time.Hour} {
		d := &disk{dir: t.TempDir()}
		changed := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(d.dir, changed, changed))
		require.NoError(t, d.allocate())
		require.Equal(t, age > 0, !d.listed.IsZero())
		log := filepath.Join(d.dir, "00001.mem")
		require.NoError(t, os.WriteFile(log, nil, 0o600))
		require.NoError(t, os.Truncate(log, 1<<20))
		if age == 0 {
			require.NoError(t, os.Chtimes(d.dir, changed, changed))
		}
		require.NoError(t, d.allocate())
		var st syscall.Stat_t
		require.NoError(t, syscall.Stat(log, &st))
		require.Positive(t, st.Blocks, "age %s", age)
	}
}
