package store

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
)

// Options change how a store works. The zero value works.
type Options struct {
	Now        func() time.Time      // nil: time.Now
	Registerer prometheus.Registerer // nil: no metrics
	Log        *slog.Logger          // nil: silent
	MinFree    uint64                // bytes that must stay free on the disk for an update; 0: a twentieth of it, 32 to 256 MiB
}

const (
	keptChanges = 8192
	keptEvents  = 2048
)

// Store is an open store.
type Store struct {
	History *History // what the store has been

	db        *badger.DB  // nil while it is opened anew, or cannot be
	disk      *disk       // nil in memory
	mark      *checkpoint // nil in memory
	compactor *compactor  // nil in memory
	now       func() time.Time
	log       *slog.Logger
	metrics   *metrics
	id        string
	cache     cache
	commit    func(*badger.Txn) error // that of Badger, but in a test

	rev     atomic.Uint64         // written by the writer only
	fault   atomic.Pointer[error] // a commit failed: nothing is written until the store is opened anew
	changes *ring[Change]
	events  *ring[v1.Event] // position p holds seq p+1

	ops     chan *op
	closing chan struct{}
	written chan struct{} // closed when the writer has ended

	mu     sync.RWMutex // guards closed, db, merger and back, so that no view begins when Close or reopen has
	closed bool
	back   chan struct{} // closed when an attempt to open the store anew has ended
	views  sync.WaitGroup
}

// ID is the random id of the store, made when the store was. A copy has the same.
func (s *Store) ID() string { return s.id }

// Revision is the revision of the last change of an object.
func (s *Store) Revision() uint64 { return s.rev.Load() }

// View runs fn on one consistent state. It returns fn's error, or one that
// wraps ErrFailed if something could not be read.
func (s *Store) View(fn func(*Tx) error) error {
	db, err := borrow(s)
	if err != nil {
		return err
	}
	defer s.views.Done()
	txn := db.NewTransaction(false)
	defer txn.Discard()
	tx := &Tx{store: s, txn: txn, now: s.time()}
	defer tx.end()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.err
}

// Writable says why updates would fail just now, or returns nil.
func (s *Store) Writable() error {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return ErrClosed
	}
	if err := s.fault.Load(); err != nil {
		return *err
	}
	if err := checkFree(s); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}

// checkFree says why nothing may be written now but what must.
func checkFree(s *Store) error {
	if err := s.disk.check(); err != nil {
		return err
	}
	s.mu.RLock()
	m := s.compactor
	s.mu.RUnlock()
	return m.check()
}

// Close waits for the update and the views under way, ends all watches, and
// closes the store. Closing it again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	close(s.closing)
	<-s.written
	s.compactor.close()
	s.views.Wait()
	s.metrics.unregister()
	s.disk.release()
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	return errors.Join(err, s.mark.close())
}

// time is now, in the form in which it is read back.
func (s *Store) time() time.Time { return s.now().UTC().Round(0) }
