package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// Tx is one view or one update. Only the function that receives it may use it, and
// only until that function returns.
type Tx struct {
	store *Store
	txn   *kv.Txn
	now   time.Time
	err   error // the first error of a method that returns none
	actor v1.Actor

	// Of an update. Its writes stay here until its function returns without an error.
	update  bool
	rev     uint64            // of this update if it changes an object
	writes  map[string][]byte // nil: deleted
	found   map[string]found  // what find has returned of the keys that are not in writes
	changes []Change
	events  []v1.Event
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

// entry is a key that is there. It is valid until the scan continues, or until
// the transaction ends.
type entry struct {
	key    string
	own    []byte  // the value that this update has written; nil: it is stored
	stored kv.Item // if own is nil
}

// read calls fn with the value, which fn must not keep.
func (e entry) read(fn func([]byte) error) error {
	if e.own != nil {
		return fn(e.own)
	}
	return e.stored.Value(fn)
}

// version identifies a stored value for the cache. It is 0 for one that is not
// committed yet.
func (e entry) version() uint64 {
	if e.own != nil {
		return 0
	}
	return e.stored.Version()
}

// lookup looks a key up. It returns ErrNotFound, or an error that wraps ErrFailed.
func (tx *Tx) lookup(key string) (entry, error) {
	if v, own := tx.writes[key]; own {
		if v == nil {
			return entry{}, ErrNotFound
		}
		return entry{key: key, own: v}, nil
	}
	item, err := tx.txn.Get(key)
	if err != nil {
		return entry{}, err
	}
	return entry{key: key, stored: item}, nil
}

// find is lookup for what is found some times in an update, such as a status.
func (tx *Tx) find(key string) (entry, error) {
	_, own := tx.writes[key]
	if own || !tx.update {
		return tx.lookup(key)
	}
	f, known := tx.found[key]
	if !known {
		f.entry, f.err = tx.lookup(key)
		if tx.found == nil {
			tx.found = map[string]found{}
		}
		tx.found[key] = f
	}
	return f.entry, f.err
}

// found is the result of find.
type found struct {
	entry entry
	err   error
}

// read calls fn with the value of key, which fn must not keep. It returns
// ErrNotFound, or fn's error, or one that wraps ErrFailed.
func (tx *Tx) read(key string, fn func([]byte) error) error {
	e, err := tx.find(key)
	if err != nil {
		return err
	}
	return e.read(fn)
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

// numbers reads the numbers stored under a key. If there is no such key, it leaves
// them as they are.
func (tx *Tx) numbers(key string, to ...*uint64) error {
	e, err := tx.lookup(key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.read(func(b []byte) error {
		if len(b) != 8*len(to) {
			return fmt.Errorf("%w: %q has %d bytes", ErrDamaged, key, len(b))
		}
		for i, n := range to {
			*n = binary.BigEndian.Uint64(b[8*i:])
		}
		return nil
	})
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
