package store

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// scan yields the keys that begin with prefix, from the key from on, in order.
// No other scan of the same update may run inside of it. If it fails, tx.err
// says so.
func (tx *Tx) scan(prefix, from string) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		it, err := iterate(tx.txn, prefix)
		if err != nil {
			tx.fail(err)
			return
		}
		defer it.Close()
		own := within(tx.writes, prefix, from)
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
			if !yield(entry{key: key, item: it.Item()}) {
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

// within lists the keys that an update wrote or deleted, in order.
func within(writes map[string][]byte, prefix, from string) (keys []string) {
	for key := range writes {
		if strings.HasPrefix(key, prefix) && key >= from {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (tx *Tx) yieldOwn(key string, yield func(entry) bool) bool {
	v := tx.writes[key]
	return v == nil || yield(entry{key: key, own: v})
}
