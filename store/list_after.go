package store

import (
	"errors"
	"iter"
	"strings"

	v1 "berth/api/v1"
)

// After yields the objects of a kind whose id is greater than an id, in the order of List. It
// reads only those that the caller takes. An object that cannot be decoded is left out
// and logged; if the scan fails, the transaction fails.
func After[S cloner[S], T cloner[T]](tx *Tx, c Collection[S, T], after string) iter.Seq[v1.Object[S, T]] {
	return func(yield func(v1.Object[S, T]) bool) {
		prefix, last := c.kind()+"/", after
		next := func(id string) bool {
			if id <= last {
				return true
			}
			o, err := c.Get(tx, id)
			if !errors.Is(err, ErrNotFound) {
				last = id
			}
			return !readable(tx, c, id, err) || yield(o)
		}
		for e := range tx.scan(prefix, prefix+after) {
			id, isSpec := strings.CutSuffix(e.key[len(prefix):], "/spec")
			if !isSpec {
				continue
			}
			// The key of an id sorts behind those of the ids that extend it by a
			// character before the slash: a-b/spec, then a/spec.
			for i := range len(id) {
				if id[i] < '/' && !next(id[:i]) {
					return
				}
			}
			if !next(id) {
				return
			}
		}
	}
}

// Each yields the objects with some ids, in their order. It leaves out those that are
// missing, and like After those that cannot be decoded.
func Each[S cloner[S], T cloner[T]](tx *Tx, c Collection[S, T], ids []string) iter.Seq[v1.Object[S, T]] {
	return func(yield func(v1.Object[S, T]) bool) {
		for _, id := range ids {
			o, err := c.Get(tx, id)
			if readable(tx, c, id, err) && !yield(o) {
				return
			}
		}
	}
}

// readable reports whether a list has an object. It logs the error of one that is damaged. Any
// other error fails the transaction.
func readable[S cloner[S], T cloner[T]](tx *Tx, c Collection[S, T], id string, err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, ErrDamaged):
		tx.store.log.Error("cannot read an object", "kind", c.kind(), "id", id, "err", err)
	case !errors.Is(err, ErrNotFound):
		tx.fail(err)
	}
	return false
}
