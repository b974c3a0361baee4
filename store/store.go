package store

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store/kv"
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
	Incarnations *Incarnations // the incarnations of the store

	db      *kv.DB
	now     func() time.Time
	log     *slog.Logger
	metrics *metrics
	id      string
	cache   cache
	commit  func(commit func() error) error // calls commit; a test replaces it

	rev     atomic.Uint64 // only the goroutine with the turn changes it
	changes *ring[Change]
	latest  latest
	ids     sync.Map        // of a kind: the Projection that listed reads
	events  *ring[v1.Event] // position p holds seq p+1

	turns   turns
	batch   *batch        // of the goroutine with the turn
	closing chan struct{} // closed by Close
	closed  atomic.Bool
}

// ID returns the random id of the store, made when the store was created. A copy
// has the same.
func (s *Store) ID() string { return s.id }

// Revision returns the revision of the last change of an object.
func (s *Store) Revision() uint64 { return s.rev.Load() }

// View runs fn on one consistent state. It returns fn's error, or one that wraps
// ErrFailed if something could not be read, or ErrClosed.
func (s *Store) View(fn func(*Tx) error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.db.View(func(t *kv.Txn) error {
		tx := &Tx{store: s, txn: t, now: s.time(), actor: v1.Controller()}
		defer tx.end()
		if err := fn(tx); err != nil {
			return err
		}
		return tx.err
	})
}

// Writable returns why updates would fail now, or nil.
func (s *Store) Writable() error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.db.Writable()
}

// Failed returns a channel that is closed when the store can never be written again, because of
// Err: the process should end. Views go on.
func (s *Store) Failed() <-chan struct{} { return s.db.Failed() }

// Err returns why the store can never be written again, or nil.
func (s *Store) Err() error { return s.db.Err() }

// Close waits for the update and the views in flight, ends all watches, and
// closes the store. Closing it again does nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.closing)
	s.turns.close()
	err := errors.Join(s.batch.commit(), s.db.Close())
	s.metrics.unregister()
	return err
}

// time returns the current time, in the form in which it is read back.
func (s *Store) time() time.Time { return s.now().UTC().Round(0) }
