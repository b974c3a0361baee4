package kv

import (
	"errors"
	"fmt"
	"sync"

	"github.com/dgraph-io/badger/v4"
)

const (
	entrySize = 12 // bytes that Badger adds to a key and its value in its estimate
	maxValue  = 1<<20 - 1
)

// Batch is the writes of one commit. Its reads see its writes.
type Batch struct {
	*Txn
	db     *DB
	writes []map[string][]byte // nil values: deleted
	logged int                 // of these writes in the log
	size   size                // of all Add
	full   func() error        // returns what checkFree did at the first Add
	err    error               // the batch cannot be committed
}

// size is what writes take in a transaction of Badger, as Badger estimates it.
type size struct{ keys, bytes int64 }

func (s size) plus(o size) size { return size{s.keys + o.keys, s.bytes + o.bytes} }

// Begin begins a batch. The caller discards it.
func (db *DB) Begin() *Batch {
	return &Batch{Txn: newTxn(db.badger, true), db: db, full: sync.OnceValue(db.checkFree)}
}

// Empty reports whether Add has taken nothing yet.
func (b *Batch) Empty() bool { return b.size.keys == 0 }

// Add takes writes into the batch, or none of them if it returns an error. A nil
// value deletes the key. It returns ErrTooBig if they fit into no batch,
// ErrBatchFull if they fit into an empty one only, or an error that wraps
// ErrFailed: then the disk is too full, for writes with onFullDisk only if Badger
// could not write them into the log that is there.
func (b *Batch) Add(writes map[string][]byte, onFullDisk bool) error {
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
		if len(value) > maxValue {
			return size{}, fmt.Errorf("%w: %q has %d bytes", ErrTooBig, key, len(value))
		}
		s = s.plus(size{1, int64(len(key) + len(value) + entrySize)})
	}
	return s, nil
}

// Set adds one write of a few bytes, for which every batch has space left.
func (b *Batch) Set(key string, value []byte) { b.apply(map[string][]byte{key: value}) }

func (b *Batch) apply(writes map[string][]byte) {
	b.writes = append(b.writes, writes)
	if err := write(b.txn, writes); err != nil && b.err == nil {
		b.err = fmt.Errorf("%w: %w", ErrFailed, err)
	}
}

func write(txn *badger.Txn, writes map[string][]byte) error {
	for key, value := range writes {
		var err error
		if value == nil {
			err = txn.Delete([]byte(key))
		} else {
			err = txn.Set([]byte(key), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Log stores what was added where a kill of the process loses nothing; views do not see it
// before Commit. The batch stays open: no other may begin before Commit. It returns false if
// the batch has to be committed at once.
func (b *Batch) Log() bool {
	if b.logged == len(b.writes) {
		return true
	}
	if b.err != nil || !b.db.wal.append(b.version, b.writes[b.logged:]) {
		return false
	}
	b.logged = len(b.writes)
	b.db.unflushed.Store(true)
	return true
}

// Commit stores the batch where a kill of the process loses nothing. If flush is true, it
// and all batches before it are on the disk when Commit returns: until then, or until
// DB.Flush, a power cut may lose them. If Badger fails, it is opened again and the batch is
// committed once more. If that fails too, the error wraps ErrFailed and nothing is written
// until Repair.
func (b *Batch) Commit(flush bool) error {
	err := b.commit(flush)
	if err != nil && b.logged > 0 && b.db.Fault() == nil {
		return b.db.broken(err) // Repair commits what only the log has
	}
	return err
}

func (b *Batch) commit(flush bool) error {
	switch {
	case b.err != nil:
		return b.err
	case b.Empty() && flush:
		return b.db.Flush()
	case b.Empty():
		return nil
	}
	if b.db.disk.mayRotate(b.size) { // Badger flushes its current log only
		if err := b.db.Flush(); err != nil {
			return err
		}
	}
	if err := b.db.disk.prepare(b.size); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := b.store(flush); err != nil {
		if err = b.commitAgain(b.db.broken(err), flush); err != nil {
			return err
		}
	}
	b.db.wal.reset()
	b.db.compactor.wrote(b.size.bytes)
	return nil
}

// Discard ends the batch. After Commit it only releases memory.
func (b *Batch) Discard() { b.discard() }

func (b *Batch) store(flush bool) error {
	return b.db.attempt(flush, func() error {
		if err := b.db.badger.commit(b.txn); err != nil || !flush {
			return err
		}
		return b.db.badger.Sync()
	})
}

// commitAgain commits the batch to a Badger that was opened again. Whether
// nothing, a part or all of it was stored the first time, all of it is stored then.
func (b *Batch) commitAgain(failed error, flush bool) error {
	b.discard()
	if err := b.db.reopen(); err != nil {
		return fmt.Errorf("%w; and it could not be opened again: %w", failed, err)
	}
	b.Txn = newTxn(b.db.badger, true)
	var errs []error
	for _, writes := range b.writes {
		errs = append(errs, write(b.txn, writes))
	}
	errs = append(errs, b.db.disk.prepare(b.size))
	if err := errors.Join(errs...); err != nil {
		return b.db.broken(err)
	}
	if err := b.store(flush); err != nil {
		return b.db.broken(err)
	}
	b.db.fault.Store(nil)
	b.db.log.Info("the store was opened again, and is written again")
	return nil
}
