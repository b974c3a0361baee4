package kv

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openIn(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// update commits writes as package store does.
func update(db *DB, writes map[string][]byte, onFullDisk bool) error {
	b := db.Begin()
	defer b.Discard()
	if err := b.add(writes, onFullDisk); err != nil {
		return err
	}
	b.Set("meta/revision", make([]byte, 8))
	return b.Commit()
}

func put(db *DB, key, value string) error {
	return update(db, map[string][]byte{key: []byte(value)}, false)
}

func remove(db *DB, key string) error {
	return update(db, map[string][]byte{key: nil}, false)
}

// endOfRun returns the writes of package store at the end of a run: a transition and a
// status.
func endOfRun(i int) map[string][]byte {
	return map[string][]byte{
		fmt.Sprintf("event/%08d", i): fmt.Appendf(nil, `{"seq":%d,"time":"2026-01-02T03:04:05.123456789Z","container":"mc","uid":"0b4cf4d4-96ad-4c8a-9a5c-34a2a3a0a4f1","event":"event","data":"exit"}`, i),
		"meta/events":                make([]byte, 16),
		"container/mc/status":        fmt.Appendf(nil, "{\"id\":\"mc\",\"generation\":0,\"revision\":%d,\"updated_at\":\"2026-01-02T03:04:05.123456789Z\"}\n{\"phase\":\"exit\",\"message\":\"%d\"}", i, i),
	}
}

// keys returns the keys that begin with prefix.
func keys(t *testing.T, db *DB, prefix string) (list []string) {
	t.Helper()
	require.NoError(t, db.View(func(tx *Txn) error {
		list = nil
		for item := range tx.Scan(prefix, prefix) {
			list = append(list, item.Key())
		}
		return nil
	}))
	return list
}

// get returns the value of a key.
func get(t *testing.T, db *DB, key string) (value string) {
	t.Helper()
	require.NoError(t, db.View(func(tx *Txn) error {
		item, err := tx.Get(key)
		if err != nil {
			return err
		}
		return item.Value(func(b []byte) error { value = string(b); return nil })
	}))
	return value
}

// noise returns text that cannot be compressed.
func noise() string {
	b := make([]byte, 200<<10)
	rand.Read(b)
	return base64.StdEncoding.EncodeToString(b)
}
