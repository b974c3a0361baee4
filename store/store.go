package store

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// Errors that a caller can act on.
var (
	ErrNotFound  = kv.ErrNotFound
	ErrExists    = errors.New("already exists")
	ErrCompacted = errors.New("older than what is kept")
	ErrTooBig    = kv.ErrTooBig
	ErrClosed    = kv.ErrClosed

	// ErrFailed wraps every failure of the storage itself. Nothing of the update was
	// stored, unless the commit itself failed, see Store.Failed: then all of it may appear
	// at the next start.
	ErrFailed = kv.ErrFailed
	// ErrDiskFull comes within ErrFailed. It passes when there is space again.
	ErrDiskFull = kv.ErrDiskFull

	// ErrLocked, ErrDamaged and ErrSchema are reasons why Open refuses a store. ErrDamaged
	// is also the error of one object whose record cannot be decoded.
	ErrLocked  = kv.ErrLocked
	ErrDamaged = kv.ErrDamaged
	ErrSchema  = errors.New("store was written by another version of berth")
)

var errReadOnly = errors.New("write in a read-only transaction")

// Options change how a store works. The zero value works.
type Options struct {
	Now        func() time.Time      // nil: time.Now
	Registerer prometheus.Registerer // nil: no metrics
	Log        *slog.Logger          // nil: silent
	MinFree    uint64                // bytes that must stay free on the disk for an update; 0: a twentieth of it, 32 to 256 MiB
}

// keptChanges is how many changes are kept for watchers, at least.
const keptChanges = 8192

// Store is an open store.
type Store struct {
	Incarnations *Incarnations // the incarnations of the store

	db  *kv.DB
	now func() time.Time
	log *slog.Logger
	id  string

	state   atomic.Pointer[state] // committed and published
	changes *changes
	clock   clock
	dropped dropped

	ops     chan *op
	batch   batch // of the writer
	writer  sync.WaitGroup
	closing chan struct{} // closed by Close
	closed  atomic.Bool
}

// Open opens the store in dir, or creates one. An empty dir keeps it in memory,
// for tests. Its error is ErrLocked, ErrDamaged, ErrSchema or ErrFailed.
func Open(dir string, o Options) (*Store, error) {
	s, err := open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// CheckLock returns ErrLocked if a process has the store in dir open, or why that is unknown.
func CheckLock(dir string) error { return kv.CheckLock(dir) }

// IDOf returns the id of the store in dir, which another process may have open; empty: unknown.
func IDOf(dir string) string { return kv.CheckpointID(dir) }

func open(dir string, o Options) (*Store, error) {
	s := &Store{now: o.Now, log: o.Log, ops: make(chan *op), closing: make(chan struct{})}
	s.Incarnations, s.batch.s = &Incarnations{store: s}, s
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	commits := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "berth_store_commit_duration_seconds",
		Help:    "Time that a commit of the store to the disk took.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9), // 0.1 ms to 6.5 s
	})
	var err error
	s.db, err = kv.Open(dir, kv.Options{
		Log:     s.log,
		MinFree: o.MinFree,
		TTL:     map[string]time.Duration{outcomePrefix: v1.OutcomeRetention},
		Observe: func(took time.Duration) { commits.Observe(took.Seconds()) },
	})
	if err != nil {
		return nil, err
	}
	err = s.start()
	if err == nil && o.Registerer != nil {
		err = o.Registerer.Register(commits)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start reads what is kept in memory, and begins to write.
func (s *Store) start() error {
	isNew, err := s.load()
	if err != nil {
		return err
	}
	found, err := s.db.CompareCheckpoint(s.id, s.Revision())
	if err != nil {
		return err
	}
	s.Incarnations.opened = s.Revision()
	s.changes = newChanges(keptChanges, s.Revision())
	s.writer.Go(s.write)
	if isNew {
		if err := s.create(); err != nil {
			return err
		}
	}
	if err := s.identify(!found && !isNew); err != nil {
		return err
	}
	return s.startClock()
}

// identify gives the store its incarnation and its checkpoint. A store that has lost its
// checkpoint was restored, or somebody has removed it, and may be an older copy of itself:
// it begins another incarnation, under the id that it had, so that its containers
// still belong to it.
func (s *Store) identify(lost bool) (err error) {
	switch {
	case s.Incarnations.Incarnation() == "":
		err = s.Incarnations.begin("", 0)
	case lost:
		s.log.Warn("the store was restored, or its file MARK was removed: it continues in a new epoch", "revision", s.Revision())
		err = s.Incarnations.begin(s.Incarnations.Incarnation(), s.Revision())
	}
	if err != nil {
		return err
	}
	return s.db.StartCheckpoint(s.id, s.Revision())
}

// ID returns the random id of the store, made when the store was created. A copy
// has the same.
func (s *Store) ID() string { return s.id }

// Revision returns the revision of the last change of an object.
func (s *Store) Revision() uint64 { return s.state.Load().revision }

// Read returns a view of the present state, which no later update changes. It waits for nothing,
// nothing waits for it, and it needs no end. After Close it is the last state.
func (s *Store) Read() *Tx {
	return &Tx{store: s, state: *s.state.Load(), now: s.time(), actor: v1.Controller()}
}

// Writable returns why updates would fail now, or nil.
func (s *Store) Writable() error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.db.Writable()
}

// Failed returns a channel that is closed when the store can never be written again, because of
// Err: the process should end. Views go on, but for what is only on the disk.
func (s *Store) Failed() <-chan struct{} { return s.db.Failed() }

// Err returns why the store can never be written again, or nil.
func (s *Store) Err() error { return s.db.Err() }

// Close waits for the update in flight, ends all watches, and closes the store. Closing
// it again does nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.closing)
	s.writer.Wait()
	return s.db.Close()
}

// time returns the current time, in the form in which it is read back.
func (s *Store) time() time.Time { return s.now().UTC().Round(0) }
