package kv

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Options change how a database works. The zero value works.
type Options struct {
	Log     *slog.Logger // nil: silent
	MinFree uint64       // bytes that must stay free on the disk for a write; 0: a twentieth of it, 32 to 256 MiB

	// Observe is called with the duration of each commit, unless it is nil.
	Observe func(time.Duration)
	// Check is called with the content after Badger was opened again, before
	// anybody else reads it. No view runs meanwhile. Its error keeps the database
	// closed until the next attempt. Nil: every content is accepted.
	Check func(*Txn) error
	// Commit is called in place of each commit, and may call it; a test lets it fail. Nil: commit
	// is called.
	Commit func(commit func() error) error
}

// DB is an open database.
type DB struct {
	options    Options
	log        *slog.Logger
	disk       *disk       // nil in memory
	checkpoint *checkpoint // nil in memory, and before StartCheckpoint
	badger     *versioned  // nil while it is opened again, or cannot be
	compactor  *compactor  // nil in memory, and before Start
	wal        *wal        // nil in memory, and before Start

	fault  atomic.Pointer[error] // a commit failed: nothing is written until Badger was opened again
	logged atomic.Bool           // the open batch has writes that are logged; only the writer changes it

	mu       sync.RWMutex // guards closed, badger, compactor and reopened, so that no view begins when Close or reopen has
	closed   bool
	reopened chan struct{} // closed when an attempt to open Badger again has ended
	views    sync.WaitGroup
}

// View runs fn on one consistent state and returns its error. While Badger is
// opened again, View waits, for some seconds at most.
func (db *DB) View(fn func(*Txn) error) error {
	b, err := db.borrow()
	if err != nil {
		return err
	}
	defer db.views.Done()
	t := newTxn(b, false)
	defer t.discard()
	return fn(t)
}

// Logged reports whether the open batch has writes that are logged. Views do not see them.
func (db *DB) Logged() bool { return db.logged.Load() }

// Fault returns the error of the commit that failed, or nil if Badger can be
// written. Repair clears it.
func (db *DB) Fault() error {
	if err := db.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// Writable returns why an ordinary write would be refused now, or nil.
func (db *DB) Writable() error {
	db.mu.RLock()
	closed := db.closed
	db.mu.RUnlock()
	if closed {
		return ErrClosed
	}
	if err := db.Fault(); err != nil {
		return err
	}
	if err := db.checkFree(); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}

// checkFree returns why ordinary writes are refused; those that are allowed on a
// full disk may still succeed.
func (db *DB) checkFree() error {
	if err := db.disk.check(); err != nil {
		return err
	}
	db.mu.RLock()
	c := db.compactor
	db.mu.RUnlock()
	return c.check()
}

// Close waits for the views and the merge in flight, and closes the database.
// The writer must have ended. Close is called once.
func (db *DB) Close() error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()
	db.compactor.close()
	db.views.Wait()
	db.disk.release()
	var err error
	if db.badger != nil {
		err = closeWithin(db.badger, closeTime)
	}
	return errors.Join(err, db.wal.close(), db.checkpoint.close())
}

// closeTime bounds how long Close waits for Badger, which tries for ever to write a table to a
// disk that is gone.
const closeTime = 5 * time.Second

// closeWithin closes Badger, or leaves it open if that takes longer than limit. Nothing is lost
// then: what was committed is in its log.
func closeWithin(b *versioned, limit time.Duration) error {
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(limit):
		return fmt.Errorf("%w: it could not be closed in %s; the next start reads its log", ErrFailed, limit)
	}
}
