package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"

	v1 "berth/api/v1"
)

// Tx is one view or one update. Only the function that was given it may use it,
// and only until that function returns.
type Tx struct {
	store *Store
	txn   *badger.Txn
	now   time.Time
	err   error // the first failure that a method without an error result met

	// Of an update. Its writes stay here until fn has returned without an error.
	update  bool
	rev     uint64            // that this update will have if it changes an object
	writes  map[string][]byte // nil: deleted
	changes []Change
	events  []v1.Event
}

// Now is the time of this transaction. It stays the same throughout.
func (tx *Tx) Now() time.Time { return tx.now }

// Revision is the revision of the state that a view reads, and the one that an
// update will have if it changes an object.
func (tx *Tx) Revision() uint64 {
	if tx.update {
		return tx.rev
	}
	rev, err := tx.number(revisionKey)
	tx.fail(err)
	return rev
}

func (tx *Tx) end() { tx.txn = nil }

func (tx *Tx) fail(err error) {
	if tx.err == nil {
		tx.err = err
	}
}

// read hands the value of key to fn, which must not keep it. It returns
// ErrNotFound, or fn's error, or one that wraps ErrFailed.
func (tx *Tx) read(key string, fn func([]byte) error) error {
	if v, ok := tx.writes[key]; ok {
		if v == nil {
			return ErrNotFound
		}
		return fn(v)
	}
	item, err := get(tx.txn, key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("%w: read %q: %w", ErrFailed, key, err)
	}
	return item.Value(fn)
}

// get turns a panic of Badger, which a failed commit can leave behind, into an error.
func get(txn *badger.Txn, key string) (item *badger.Item, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("badger panicked: %v", p)
		}
	}()
	return txn.Get([]byte(key))
}

func (tx *Tx) set(key string, value []byte) error {
	if !tx.update || tx.txn == nil {
		return errReadOnly
	}
	if tx.writes == nil {
		tx.writes = map[string][]byte{}
	}
	tx.writes[key] = value
	return nil
}

func (tx *Tx) remove(key string) error { return tx.set(key, nil) }

// numbers reads a key that holds numbers. A key that is not there leaves them 0.
func (tx *Tx) numbers(key string, to ...*uint64) error {
	err := tx.read(key, func(b []byte) error {
		if len(b) != 8*len(to) {
			return fmt.Errorf("%w: %q holds %d bytes", ErrDamaged, key, len(b))
		}
		for i, n := range to {
			*n = binary.BigEndian.Uint64(b[8*i:])
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (tx *Tx) number(key string) (n uint64, err error) {
	err = tx.numbers(key, &n)
	return n, err
}

func (tx *Tx) setNumbers(key string, ns ...uint64) error {
	var b []byte
	for _, n := range ns {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return tx.set(key, b)
}

// scan yields the keys that begin with prefix, from the key from on, in order.
// Values are nil unless wanted, and must not be kept. No other scan of the same
// update may run inside of it.
func (tx *Tx) scan(prefix, from string, values bool) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		it, err := iterate(tx.txn, prefix)
		if err != nil {
			tx.fail(err)
			return
		}
		defer it.Close()
		own := tx.own(prefix, from)
		for it.Seek([]byte(from)); it.Valid(); it.Next() {
			key := string(it.Item().Key())
			for len(own) > 0 && own[0] < key {
				if !tx.yieldOwn(own[0], yield) {
					return
				}
				own = own[1:]
			}
			if len(own) > 0 && own[0] == key {
				continue // what this update wrote hides what was there
			}
			if !tx.yieldItem(key, it.Item(), values, yield) {
				return
			}
		}
		for _, key := range own {
			if !tx.yieldOwn(key, yield) {
				return
			}
		}
	}
}

func iterate(txn *badger.Txn, prefix string) (it *badger.Iterator, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: badger panicked: %v", ErrFailed, p)
		}
	}()
	// Values lie beside their keys: prefetching them would only start goroutines.
	return txn.NewIterator(badger.IteratorOptions{Prefix: []byte(prefix)}), nil
}

// own lists the keys that this update wrote or deleted.
func (tx *Tx) own(prefix, from string) (keys []string) {
	for key := range tx.writes {
		if strings.HasPrefix(key, prefix) && key >= from {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (tx *Tx) yieldOwn(key string, yield func(string, []byte) bool) bool {
	v := tx.writes[key]
	return v == nil || yield(key, v)
}

func (tx *Tx) yieldItem(key string, item *badger.Item, values bool, yield func(string, []byte) bool) bool {
	if !values {
		return yield(key, nil)
	}
	more := false
	err := item.Value(func(v []byte) error {
		more = yield(key, v)
		return nil
	})
	if err != nil {
		tx.fail(fmt.Errorf("%w: read %q: %w", ErrFailed, key, err))
		return false
	}
	return more
}
