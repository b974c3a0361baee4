package store

import (
	"iter"
	"slices"
	"strings"
)

// scan yields the keys that begin with prefix, from the key from on, in order.
// No other scan of the same update may run inside of it. If it fails, tx.err is
// the error.
func (tx *Tx) scan(prefix, from string) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		own := within(tx.writes, prefix, from)
		for item, err := range tx.txn.Scan(prefix, from) {
			if err != nil {
				tx.fail(err)
				return
			}
			key := item.Key()
			for len(own) > 0 && own[0] < key {
				if !tx.yieldOwn(own[0], yield) {
					return
				}
				own = own[1:]
			}
			if len(own) > 0 && own[0] == key {
				continue // this update has replaced it
			}
			if !yield(entry{key: key, stored: item}) {
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

// within returns the keys that an update wrote or deleted, in order.
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
