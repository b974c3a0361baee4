package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	v1 "berth/api/v1"
)

// Create stores a new object, or returns ErrExists.
func (c Collection[S, T]) Create(tx *Tx, id string, spec S) error {
	if id == "" || strings.Contains(id, "/") {
		return fmt.Errorf("%s %q: an id is not empty and has no slash", c.kind, id)
	}
	switch err := tx.has(c.specKey(id)); {
	case err == nil:
		return c.wrap(id, ErrExists)
	case !errors.Is(err, ErrNotFound):
		return c.wrap(id, err)
	}
	value, err := json.Marshal(spec)
	if err != nil {
		return c.wrap(id, err)
	}
	if err := (index{c.kind}).move(tx, id, "", c.ref(spec)); err != nil {
		return c.wrap(id, err)
	}
	meta := v1.Meta{ID: id, UID: uuid.NewString(), Generation: 1, Revision: tx.rev, CreatedAt: tx.now, UpdatedAt: tx.now}
	return c.write(tx, id, SpecChanged, c.specKey(id), meta, value)
}

// SetSpec changes what is wanted, and raises the generation. It returns
// ErrNotFound, or the error of change. A change that leaves the spec as it was
// writes nothing.
func (c Collection[S, T]) SetSpec(tx *Tx, id string, change func(*S) error) error {
	h, old, err := recordToChange[S](tx, c.specKey(id))
	if err != nil {
		return c.wrap(id, err)
	}
	before := c.ref(h.Value)
	if err := change(&h.Value); err != nil {
		return err
	}
	value, err := json.Marshal(h.Value)
	if err != nil || bytes.Equal(value, old) {
		return c.wrap(id, err)
	}
	if err := (index{c.kind}).move(tx, id, before, c.ref(h.Value)); err != nil {
		return c.wrap(id, err)
	}
	h.Meta.Generation++
	h.Meta.Revision, h.Meta.UpdatedAt = tx.rev, tx.now
	return c.write(tx, id, SpecChanged, c.specKey(id), h.Meta, value)
}

// SetStatus changes what was observed, or returns ErrNotFound. A change that
// leaves the status as it was writes nothing.
func (c Collection[S, T]) SetStatus(tx *Tx, id string, change func(*T)) error {
	if err := tx.has(c.specKey(id)); err != nil {
		return c.wrap(id, err)
	}
	h, old, err := recordToChange[T](tx, c.statusKey(id))
	if errors.Is(err, ErrNotFound) {
		old, err = json.Marshal(h.Value)
	}
	if err != nil {
		return c.wrap(id, err)
	}
	before := c.held(h.Value)
	change(&h.Value)
	value, err := json.Marshal(h.Value)
	if err != nil || bytes.Equal(value, old) {
		return c.wrap(id, err)
	}
	if err := holding(c.kind).hold(tx, id, before, c.held(h.Value)); err != nil {
		return c.wrap(id, err)
	}
	meta := v1.Meta{ID: id, Revision: tx.rev, UpdatedAt: tx.now}
	return c.write(tx, id, StatusChanged, c.statusKey(id), meta, value)
}

// Delete asks for the object to go, or returns ErrNotFound. Its controller
// purges it when nothing is left of it. Asking again changes nothing.
func (c Collection[S, T]) Delete(tx *Tx, id string) error {
	h, value, err := recordToChange[S](tx, c.specKey(id))
	if err != nil || h.Meta.Deleted {
		return c.wrap(id, err)
	}
	h.Meta.Deleted, h.Meta.Revision, h.Meta.UpdatedAt = true, tx.rev, tx.now
	return c.write(tx, id, SpecChanged, c.specKey(id), h.Meta, value)
}

// Purge forgets the object. One that is not there stays so.
func (c Collection[S, T]) Purge(tx *Tx, id string) error {
	err := tx.has(c.specKey(id))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		err = errors.Join(c.unindex(tx, id), tx.remove(c.specKey(id)), tx.remove(c.statusKey(id)))
	}
	if err == nil {
		tx.recordChange(Change{Kind: c.kind, ID: id, What: Purged})
	}
	return c.wrap(id, err)
}

func (c Collection[S, T]) write(tx *Tx, id string, what What, key string, meta v1.Meta, value []byte) error {
	if err := writeRecord(tx, key, meta, value); err != nil {
		return c.wrap(id, err)
	}
	tx.recordChange(Change{Kind: c.kind, ID: id, What: what})
	return nil
}

// has returns nil if the key is there, and ErrNotFound if it is not.
func (tx *Tx) has(key string) error {
	_, err := tx.find(key)
	return err
}

// recordChange tells the watchers of a change, and of the same one in a row once.
func (tx *Tx) recordChange(c Change) {
	if n := len(tx.changes); n == 0 || tx.changes[n-1] != c {
		tx.changes = append(tx.changes, c)
	}
}
