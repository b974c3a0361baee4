package kv

import (
	"errors"
	"fmt"
	"time"
)

// Commit stores the batch, on the disk. If Badger fails, it is opened again and the batch is
// committed once more. If that fails too, the error wraps ErrFailed and nothing is written until
// Repair.
func (b *Batch) Commit() error {
	err := b.commit()
	switch {
	case err != nil && b.logged > 0 && b.db.Fault() == nil:
		return b.db.broken(err) // Repair commits what only the log has
	case err == nil:
		b.db.logged.Store(false)
	}
	return err
}

func (b *Batch) commit() error {
	switch {
	case b.err != nil:
		return b.err
	case b.Empty():
		return nil
	}
	if err := b.db.disk.prepare(b.size); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := b.store(); err != nil {
		if err = b.commitAgain(b.db.broken(err)); err != nil {
			return err
		}
	}
	b.db.wal.reset()
	b.db.compactor.wrote(b.size.bytes)
	return nil
}

func (b *Batch) store() error { return b.db.attempt(b.db.badger, b.Txn, !b.filler) }

// attempt commits a transaction, in the place where a test may fail it. It turns a panic of
// Badger into an error.
func (db *DB) attempt(b *versioned, t *Txn, flush bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("badger panicked: %v", p)
		}
	}()
	began := time.Now()
	if db.options.Observe != nil {
		defer func() { db.options.Observe(time.Since(began)) }()
	}
	commit := func() error {
		if err := b.commit(t.txn); err != nil || !flush {
			return err
		}
		return b.Sync()
	}
	if db.options.Commit != nil {
		return db.options.Commit(commit)
	}
	return commit()
}

// commitAgain commits the batch to a Badger that was opened again. Whether
// nothing, a part or all of it was stored the first time, all of it is stored then.
func (b *Batch) commitAgain(failed error) error {
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
	if err := b.store(); err != nil {
		return b.db.broken(err)
	}
	b.db.fault.Store(nil)
	b.db.log.Info("the store was opened again, and is written again")
	return nil
}
