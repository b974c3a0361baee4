package storetest

import "berth/store"

// Damage gives an object that has no status yet one that cannot be decoded: Get returns
// store.ErrDamaged. kind is the value of its collection.
func Damage(tx *store.Tx, kind, id string) error {
	return store.Collection[status, status](kind).SetStatus(tx, id, func(s *status) { s.State = 1 })
}

// status has a number where the statuses of a store have a text.
type status struct {
	State int `json:"state"`
}

// Clone returns a copy.
func (s status) Clone() status { return s }
