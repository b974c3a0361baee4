package storetest

import (
	"errors"

	"berth/store"
)

// Damage replaces an object by one that cannot be read: Get returns store.ErrDamaged. kind is
// the value of its collection.
func Damage(tx *store.Tx, kind, id string) error {
	c := store.Collection[damaged, damaged](kind)
	return errors.Join(c.Purge(tx, id), c.Create(tx, id, damaged{}))
}

// damaged is the spec and the status of no kind.
type damaged struct{}
