package kv

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
)

// TestMergesKeepVersions: a merge keeps what an open view reads, and drops it once the view
// has ended.
func TestMergesKeepVersions(t *testing.T) {
	db := openOnly(t, t.TempDir())
	require.NoError(t, put(db, "key", "old"))
	view := newTxn(db.badger, false)
	defer view.discard()
	value := func() (v string, err error) {
		again := Txn{txn: db.badger.NewTransactionAt(view.version, false), badger: db.badger}
		defer again.txn.Discard()
		item, err := again.Get("key")
		if err == nil {
			err = item.Value(func(b []byte) error { v = string(b); return nil })
		}
		return v, err
	}
	merge := func() {
		for i := range 2 * memTableSize / (200 << 10) {
			require.NoError(t, put(db, "key", fmt.Sprint("new ", i)))
			require.NoError(t, put(db, fmt.Sprint("filler ", i), noise()))
		}
		require.NotZero(t, db.badger.Levels()[0].NumTables)
		require.NoError(t, db.badger.flatten())
	}

	merge()
	v, err := value()
	require.NoError(t, err)
	require.Equal(t, "old", v)

	view.discard()
	merge()
	_, err = value()
	require.ErrorIs(t, err, ErrNotFound)
	require.Empty(t, db.badger.views)
}

// TestVersionsAfterOpen: a database that was opened again continues behind its last commit.
func TestVersionsAfterOpen(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, put(db, "key/1", ""))
	require.NoError(t, put(db, "key/2", ""))
	last := db.badger.committed
	require.NoError(t, db.Close())

	db = openOnly(t, dir)
	require.Equal(t, last, db.badger.committed)
	require.Equal(t, []string{"key/1", "key/2"}, keys(t, db, "key/"))
	require.NoError(t, put(db, "key/3", ""))
	require.Equal(t, []string{"key/1", "key/2", "key/3"}, keys(t, db, "key/"))
}

// TestVersionsOfOlderBerths: a berth that left the versions to Badger wrote files that this one
// opens, and opens those of this one.
func TestVersionsOfOlderBerths(t *testing.T) {
	dir := t.TempDir()
	older := func(do func(*badger.Txn) error) {
		b, err := badger.Open(badgerOptions(dir, slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		require.NoError(t, b.Update(do))
		require.NoError(t, b.Close())
	}
	older(func(txn *badger.Txn) error { return txn.Set([]byte("key/1"), nil) })
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, put(db, "key/2", ""))
	require.NoError(t, remove(db, "key/1"))
	require.NoError(t, db.Close())
	older(func(txn *badger.Txn) error {
		_, removed := txn.Get([]byte("key/1"))
		require.ErrorIs(t, removed, badger.ErrKeyNotFound)
		_, err := txn.Get([]byte("key/2"))
		return errors.Join(err, txn.Set([]byte("key/3"), nil))
	})
	require.Equal(t, []string{"key/2", "key/3"}, keys(t, openOnly(t, dir), "key/"))
}

// openOnly opens a database whose tables are not merged.
func openOnly(t *testing.T, dir string) *DB {
	t.Helper()
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
