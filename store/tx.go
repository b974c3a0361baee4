package store

import (
	"encoding/json"
	"time"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// Tx is a view that Read returned, or one update. Any goroutine may use a view; an update is for the
// function that receives it, until that function returns. What a Tx returns must not be changed.
type Tx struct {
	state // of an update: with its changes
	store *Store
	now   time.Time
	actor v1.Actor

	// Of an update. Nothing of it is in the store until its function returns without an error.
	update  bool
	writes  map[string][]byte // nil values: deleted
	changes []Change
	err     error // of an event
}

// Now returns the time of this transaction: always the same.
func (tx *Tx) Now() time.Time { return tx.now }

// Actor returns who changes the store: the one of a Request, or else
// v1.Controller().
func (tx *Tx) Actor() v1.Actor { return tx.actor }

// Revision returns the revision of the state that a view reads, or the one that an
// update will have if it changes an object.
func (tx *Tx) Revision() uint64 {
	if tx.update {
		return tx.revision + 1
	}
	return tx.revision
}

// write changes a key on the disk; nil deletes it. After it, the update has rows of its own.
func (tx *Tx) write(key string, value []byte) error {
	if !tx.update {
		return errReadOnly
	}
	if tx.writes == nil {
		tx.writes, tx.rows = map[string][]byte{}, tx.rows.Clone()
	}
	tx.writes[key] = value
	return nil
}

// read calls fn with the present content of the disk, or returns ErrClosed. It is for what is not in memory, and
// only for views: the changes of updates that have not been committed are not there.
func (tx *Tx) read(fn func(*kv.Txn) error) error {
	if tx.update {
		return errOnDisk
	}
	return tx.store.db.View(fn)
}

func unmarshal(item kv.Item, to any) error {
	return item.Value(func(text []byte) error { return json.Unmarshal(text, to) })
}
