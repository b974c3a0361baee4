package kv

import (
	"fmt"
	"time"
)

// Flush returns when all that was committed is on the disk. Its error wraps ErrFailed; nothing
// is written then until Repair. Only the writer calls it.
func (db *DB) Flush() error {
	if !db.Unflushed() {
		return nil
	}
	if err := db.attempt(true, func() error { return db.badger.Sync() }); err != nil {
		return db.broken(err)
	}
	return nil
}

// Unflushed reports whether a power cut may lose something that was committed.
func (db *DB) Unflushed() bool { return db.unflushed.Load() }

// attempt calls fn, which commits a batch or flushes, in the place where a test may fail it. It
// turns a panic of Badger into an error.
func (db *DB) attempt(flush bool, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("badger panicked: %v", p)
		}
	}()
	began := time.Now()
	if db.options.Observe != nil {
		defer func() { db.options.Observe(time.Since(began)) }()
	}
	db.unflushed.Store(true)
	if db.options.Commit == nil {
		err = fn()
	} else {
		err = db.options.Commit(fn)
	}
	if err == nil && flush {
		db.unflushed.Store(false)
	}
	return err
}
