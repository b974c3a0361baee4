package kv

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
)

const (
	entrySize = 12 // bytes that Badger adds to a key and its value in its estimate
	maxValue  = 1<<20 - 1
	maxKey    = 65_000 // of Badger
)

// Batch is the writes of one commit.
type Batch struct {
	txn  *badger.Txn
	db   *DB
	size size         // of all writes
	full func() error // returns what checkFree did at the first Add
	err  error        // the batch cannot be committed
}

// size is what writes take in a transaction of Badger, as Badger estimates it.
type size struct{ keys, bytes int64 }

func (s size) plus(o size) size { return size{s.keys + o.keys, s.bytes + o.bytes} }

// Begin begins a batch. The caller discards it.
func (db *DB) Begin() *Batch {
	return &Batch{txn: db.badger.NewTransaction(true), db: db, full: sync.OnceValue(db.checkFree)}
}

// Empty reports whether nothing was added yet.
func (b *Batch) Empty() bool { return b.size.keys == 0 }

// Add takes writes into the batch, or none of them if it returns an error. A nil
// value deletes the key. It returns ErrTooBig if they fit into no batch,
// ErrBatchFull if they fit into an empty one only, or an error that wraps
// ErrFailed: then the disk is too full, or an earlier commit has failed.
func (b *Batch) Add(writes map[string][]byte) error { return b.add(writes, false) }

// AddOnFullDisk is Add for writes that a full disk refuses only if Badger could not write
// them into the log that is there.
func (b *Batch) AddOnFullDisk(writes map[string][]byte) error { return b.add(writes, true) }

func (b *Batch) add(writes map[string][]byte, onFullDisk bool) error {
	if err := b.db.Err(); err != nil {
		return err
	}
	more, err := measure(writes)
	if err != nil {
		return err
	}
	all := b.size.plus(more)
	if err := b.full(); err != nil && (!onFullDisk || !b.db.disk.fitsLog(all)) {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	switch {
	case !b.fits(more):
		return fmt.Errorf("%w: %d keys, %d bytes", ErrTooBig, more.keys, more.bytes)
	case !b.fits(all):
		return ErrBatchFull
	}
	b.size = all
	b.apply(writes)
	return nil
}

// fits reports whether a transaction of Badger holds so much, and one more Set.
func (b *Batch) fits(s size) bool {
	const spare = 64 // bytes of the key and the value of that Set
	return s.keys+1 < b.db.badger.MaxBatchCount() && s.bytes+spare < b.db.badger.MaxBatchSize()
}

func measure(writes map[string][]byte) (s size, err error) {
	for key, value := range writes {
		if len(key) == 0 || len(key) > maxKey {
			return size{}, fmt.Errorf("%w: a key has %d bytes", ErrTooBig, len(key))
		}
		if len(value) > maxValue {
			return size{}, fmt.Errorf("%w: %q has %d bytes", ErrTooBig, key, len(value))
		}
		s = s.plus(size{1, int64(len(key) + len(value) + entrySize)})
	}
	return s, nil
}

// Set adds one write of a few bytes, for which every batch has space left.
func (b *Batch) Set(key string, value []byte) {
	b.size = b.size.plus(size{1, int64(len(key) + len(value) + entrySize)})
	b.apply(map[string][]byte{key: value})
}

func (b *Batch) apply(writes map[string][]byte) {
	for key, value := range writes {
		var err error
		if value == nil {
			err = b.txn.Delete([]byte(key))
		} else {
			err = b.txn.SetEntry(b.db.entry(key, value))
		}
		if err != nil && b.err == nil {
			b.err = fmt.Errorf("%w: %w", ErrFailed, err)
		}
	}
}

func (db *DB) entry(key string, value []byte) *badger.Entry {
	e := badger.NewEntry([]byte(key), value)
	for prefix, ttl := range db.options.TTL {
		if strings.HasPrefix(key, prefix) {
			return e.WithTTL(ttl)
		}
	}
	return e
}

// Commit stores the batch, on the disk. If Badger fails, nothing is written any more, see
// DB.Failed.
func (b *Batch) Commit() error {
	switch {
	case b.err != nil:
		return b.err
	case b.Empty():
		return nil
	}
	if err := b.db.disk.prepare(b.size); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	began := time.Now()
	err := b.db.commit(b.txn)
	if b.db.options.Observe != nil {
		b.db.options.Observe(time.Since(began))
	}
	if err != nil {
		return fmt.Errorf("%w: commit: %w", ErrFailed, err)
	}
	return nil
}

// Discard ends the batch. After Commit it only releases memory.
func (b *Batch) Discard() { b.txn.Discard() }
