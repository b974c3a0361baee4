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
		return fmt.Errorf("%s %q: an id must not be empty or have a slash", c.kind(), id)
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
	if err := specIndex(c.kind()).move(tx, id, "", specRef(spec)); err != nil {
		return c.wrap(id, err)
	}
	if err := errors.Join(keyIndex.update(tx, id, nil, keyRefs(spec)), addShare(tx, id, spec)); err != nil {
		return c.wrap(id, err)
	}
	meta := v1.Meta{ID: id, UID: uuid.NewString(), Generation: 1, Revision: tx.rev, CreatedAt: tx.now, UpdatedAt: tx.now}
	return c.write(tx, id, SpecChanged, c.specKey(id), meta, value)
}

// SetSpec changes the desired state and raises the generation. It returns
// ErrNotFound, or the error of change. A change that leaves the spec as it was
// writes nothing.
func (c Collection[S, T]) SetSpec(tx *Tx, id string, change func(*S) error) error {
	r, old, err := recordToChange[S](tx, c.specKey(id))
	if err != nil {
		return c.wrap(id, err)
	}
	before, keys := specRef(r.Value), keyRefs(r.Value)
	if err := change(&r.Value); err != nil {
		return err
	}
	value, err := json.Marshal(r.Value)
	if err != nil || bytes.Equal(value, old) {
		return c.wrap(id, err)
	}
	if err := specIndex(c.kind()).move(tx, id, before, specRef(r.Value)); err != nil {
		return c.wrap(id, err)
	}
	if err := keyIndex.update(tx, id, keys, keyRefs(r.Value)); err != nil {
		return c.wrap(id, err)
	}
	r.Meta.Generation++
	r.Meta.Revision, r.Meta.UpdatedAt = tx.rev, tx.now
	return c.write(tx, id, SpecChanged, c.specKey(id), r.Meta, value)
}

// SetStatus changes the observed state, or returns ErrNotFound. A change that leaves
// the status as it was writes nothing.
func (c Collection[S, T]) SetStatus(tx *Tx, id string, change func(*T)) error {
	if err := tx.has(c.specKey(id)); err != nil {
		return c.wrap(id, err)
	}
	r, old, err := recordToChange[T](tx, c.statusKey(id))
	if errors.Is(err, ErrNotFound) {
		old, err = json.Marshal(r.Value)
	}
	if err != nil {
		return c.wrap(id, err)
	}
	before := statusRefs(r.Value)
	change(&r.Value)
	value, err := json.Marshal(r.Value)
	if err != nil || bytes.Equal(value, old) {
		return c.wrap(id, err)
	}
	if err := statusIndex(c.kind()).update(tx, id, before, statusRefs(r.Value)); err != nil {
		return c.wrap(id, err)
	}
	if err := updateShare(tx, id, r.Value); err != nil {
		return c.wrap(id, err)
	}
	meta := v1.Meta{ID: id, Revision: tx.rev, UpdatedAt: tx.now}
	return c.write(tx, id, StatusChanged, c.statusKey(id), meta, value)
}

// Delete marks the object as deleted, or returns ErrNotFound. Its controller purges
// it when nothing is left of it on the host. Deleting it again changes nothing.
func (c Collection[S, T]) Delete(tx *Tx, id string) error {
	r, value, err := recordToChange[S](tx, c.specKey(id))
	if err != nil || r.Meta.Deleted {
		return c.wrap(id, err)
	}
	r.Meta.Deleted, r.Meta.Revision, r.Meta.UpdatedAt = true, tx.rev, tx.now
	return c.write(tx, id, SpecChanged, c.specKey(id), r.Meta, value)
}

// Purge removes the records of the object, if there is one.
func (c Collection[S, T]) Purge(tx *Tx, id string) error {
	err := tx.has(c.specKey(id))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		err = errors.Join(c.unindex(tx, id), purgeBackup(tx, c.kind(), id), tx.remove(c.specKey(id)), tx.remove(c.statusKey(id)))
	}
	if err == nil {
		tx.recordChange(Change{Kind: c.kind(), ID: id, What: Purged})
	}
	return c.wrap(id, err)
}

func (c Collection[S, T]) write(tx *Tx, id string, what What, key string, meta v1.Meta, value []byte) error {
	if err := writeRecord(tx, key, meta, value); err != nil {
		return c.wrap(id, err)
	}
	tx.recordChange(Change{Kind: c.kind(), ID: id, What: what})
	return nil
}

// has returns nil if the key is there, and ErrNotFound if it is not.
func (tx *Tx) has(key string) error {
	_, err := tx.find(key)
	return err
}

// recordChange adds a change for the watchers, unless it equals the one before.
func (tx *Tx) recordChange(c Change) {
	if n := len(tx.changes); n == 0 || tx.changes[n-1] != c {
		tx.changes = append(tx.changes, c)
	}
}
