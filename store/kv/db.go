package kv

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// Errors that a caller can act on.
var (
	ErrNotFound  = errors.New("not found")
	ErrTooBig    = errors.New("too big for one update")
	ErrBatchFull = errors.New("batch is full")
	ErrClosed    = errors.New("store is closed")

	// ErrFailed wraps every failure of the storage itself. Nothing of the batch was stored,
	// unless Badger's own commit failed, see DB.Failed: then all of it may appear at the next
	// start.
	ErrFailed = errors.New("store failed")
	// ErrDiskFull comes within ErrFailed. It passes when there is space again.
	ErrDiskFull = errors.New("disk is full")

	// ErrLocked and ErrDamaged are reasons why Open refuses a directory.
	ErrLocked  = errors.New("another berth holds the store")
	ErrDamaged = errors.New("store is damaged")
)

// Options change how a database works. The zero value works.
type Options struct {
	Log     *slog.Logger // nil: silent
	MinFree uint64       // bytes that must stay free on the disk for a write; 0: a twentieth of it, 32 to 256 MiB

	TTL map[string]time.Duration // of the keys that begin with a text: they vanish by themselves

	// Observe is called with the duration of each commit, unless it is nil.
	Observe func(time.Duration)
}

// DB is an open database.
type DB struct {
	options    Options
	log        *slog.Logger
	badger     *badger.DB
	disk       *disk       // nil in memory
	compactor  *compactor  // nil in memory
	checkpoint *checkpoint // nil in memory, and before StartCheckpoint

	views  sync.WaitGroup
	failed chan struct{} // closed when fault is set

	mu     sync.RWMutex // held for a commit, and to begin a view
	closed bool
	fault  error // of the commit that failed
}

// View runs fn on one consistent state and returns its error. It waits for the commit in flight.
// After a commit has failed it returns Err: nobody may see what is not known to be on the disk.
func (db *DB) View(fn func(*Txn) error) error {
	t, end, err := db.beginView()
	if err != nil {
		return err
	}
	defer end()
	return fn(t)
}

func (db *DB) beginView() (t *Txn, end func(), err error) {
	db.mu.RLock() // or Badger would show it a commit that is about to fail
	defer db.mu.RUnlock()
	if db.closed {
		return nil, nil, ErrClosed
	}
	if err := db.Err(); err != nil {
		return nil, nil, err
	}
	db.views.Add(1)
	txn := db.badger.NewTransaction(false)
	return &Txn{txn}, func() { txn.Discard(); db.views.Done() }, nil
}

// commit stores a transaction on the disk.
func (db *DB) commit(txn *badger.Txn) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	err := txn.Commit()
	if err != nil {
		db.fail(err)
	}
	return err
}

// fail refuses everything from now on. What of a failed commit is on the disk is unknown, Badger's
// memory may have it already, and Badger may have no log to write to.
func (db *DB) fail(err error) {
	db.fault = fmt.Errorf("%w: commit: %w", ErrFailed, err)
	close(db.failed)
}

// Failed returns a channel that is closed when a commit of Badger has failed, which a lack of
// space that is seen beforehand is not. Nothing is written or read any more: the process should
// end, and its next start finds out what is stored.
func (db *DB) Failed() <-chan struct{} { return db.failed }

// Err returns the error of the commit that failed, or nil.
func (db *DB) Err() error {
	select {
	case <-db.failed:
		return db.fault
	default:
		return nil
	}
}

// Writable returns why an ordinary write would be refused now, or nil.
func (db *DB) Writable() error {
	if err := db.Err(); err != nil {
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
	return db.compactor.check()
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
	return errors.Join(closeWithin(db.badger, closeTime), db.checkpoint.close())
}

// closeTime bounds how long Close waits for Badger, which tries for ever to write a table to a
// disk that is gone.
const closeTime = 5 * time.Second

// closeWithin closes Badger, or leaves it open if that takes longer than limit. Nothing is lost
// then: what was committed is in its log.
func closeWithin(b *badger.DB, limit time.Duration) error {
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(limit):
		return fmt.Errorf("%w: it could not be closed in %s; the next start reads its log", ErrFailed, limit)
	}
}

// Backup writes one consistent state of the database to w, while it is used.
func (db *DB) Backup(w io.Writer) error {
	_, end, err := db.beginView() // Close waits for it
	if err != nil {
		return err
	}
	defer end()
	s := db.badger.NewStream()
	s.NumGo = 1 // each goroutine would read a state of its own
	if _, err := s.Backup(w, 0); err != nil {
		return fmt.Errorf("%w: backup: %w", ErrFailed, err)
	}
	return db.Err() // it may have read what was not committed
}

// loadAtOnce is how many batches of Load are written at the same time.
const loadAtOnce = 16

// Load creates a database in dir from what Backup has written.
func Load(dir string, r io.Reader) error {
	o := badgerOptions(dir, slog.New(slog.DiscardHandler)).WithNumCompactors(2)
	b, err := openBadger(o)
	if err != nil {
		return err
	}
	err = b.Load(r, loadAtOnce)
	return errors.Join(err, b.Close())
}
