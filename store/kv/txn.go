package kv

import (
	"errors"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"
)

// Txn reads one consistent state.
type Txn struct{ txn *badger.Txn }

// Item is a stored key with its value. It is valid until the scan continues or
// the transaction ends.
type Item struct{ item *badger.Item }

// Key returns a copy of the key.
func (i Item) Key() string { return string(i.item.Key()) }

// Value calls fn with the value, which fn must not keep.
func (i Item) Value(fn func([]byte) error) error { return i.item.Value(fn) }

// Get returns the item of a key, or ErrNotFound, or an error that wraps ErrFailed.
func (t *Txn) Get(key string) (Item, error) {
	i, err := t.txn.Get([]byte(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return Item{}, ErrNotFound
	}
	if err != nil {
		return Item{}, fmt.Errorf("%w: read %q: %w", ErrFailed, key, err)
	}
	return Item{i}, nil
}

// Scan yields the items whose keys begin with prefix, from the key from on, in
// the order of their keys.
func (t *Txn) Scan(prefix, from string) iter.Seq[Item] { return t.scan(prefix, from, false) }

// ScanBack yields the items whose keys begin with prefix, from the key from on, in the
// reverse order of their keys.
func (t *Txn) ScanBack(prefix, from string) iter.Seq[Item] { return t.scan(prefix, from, true) }

func (t *Txn) scan(prefix, from string, back bool) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		// Values lie beside their keys: prefetching them would only start goroutines.
		it := t.txn.NewIterator(badger.IteratorOptions{Prefix: []byte(prefix), Reverse: back})
		defer it.Close()
		for it.Seek([]byte(from)); it.Valid(); it.Next() {
			if !yield(Item{it.Item()}) {
				return
			}
		}
	}
}
