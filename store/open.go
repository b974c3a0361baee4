package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	v1 "berth/api/v1"
)

const memTableSize = 8 << 20

// Open opens the store in dir, or makes one. An empty dir keeps it in memory,
// for tests. It returns ErrLocked, ErrDamaged, ErrNewer or ErrFailed.
func Open(dir string, o Options) (*Store, error) {
	s, err := open(dir, o, migrations)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

func open(dir string, o Options, steps []migration) (*Store, error) {
	s := &Store{
		now:     o.Now,
		log:     o.Log,
		ops:     make(chan *op),
		closing: make(chan struct{}),
		written: make(chan struct{}),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.openDisk(dir, o.MinFree); err != nil {
		return nil, err
	}
	err := s.start(dir, steps)
	if err == nil {
		s.metrics, err = newMetrics(o.Registerer)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openDisk opens Badger.
func (s *Store) openDisk(dir string, minFree uint64) (err error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("%w: %w", ErrFailed, err)
		}
		if minFree == 0 {
			minFree = defaultMinFree
		}
		s.disk = &disk{dir: dir, minFree: minFree}
	}
	s.db, err = openBadger(badgerOptions(dir, s.log))
	return err
}

// start begins to write, and makes the store one of this version.
func (s *Store) start(dir string, steps []migration) error {
	if err := s.load(); err != nil {
		close(s.written)
		return err
	}
	s.changes = newRing(keptChanges, 0, Change{Revision: s.rev.Load()})
	go s.write()
	if err := s.migrate(steps); err != nil {
		return err
	}
	return s.disk.prepare()
}

// load reads the numbers that the store goes on from.
func (s *Store) load() error {
	return s.View(func(tx *Tx) error {
		rev, err := tx.number(revisionKey)
		if err != nil {
			return err
		}
		_, newest, err := tx.eventRange()
		s.rev.Store(rev)
		s.events = newRing(keptEvents, newest, v1.Event{})
		return err
	})
}

func badgerOptions(dir string, log *slog.Logger) badger.Options {
	o := badger.DefaultOptions(dir).
		WithLogger(badgerLog{log}).
		WithDetectConflicts(false). // there is one writer
		WithMetricsEnabled(false).
		WithNumMemtables(2).WithMemTableSize(memTableSize).
		WithValueThreshold(maxValue + 1). // values stay beside their keys
		WithValueLogFileSize(2 << 20)     // so nothing is written here
	if dir == "" {
		return o.WithInMemory(true).
			WithCompression(options.None).WithBlockCacheSize(0).
			WithNumCompactors(0).WithNumLevelZeroTables(1 << 20).WithNumLevelZeroTablesStall(1 << 20)
	}
	return o.WithSyncWrites(true).
		WithBlockCacheSize(8 << 20).WithIndexCacheSize(4 << 20).
		WithNumCompactors(2)
}

// openBadger opens the database. After a kill -9 in the wrong moment the first
// attempt fails on an empty log, and removes it.
func openBadger(o badger.Options) (*badger.DB, error) {
	db, err := tryBadger(o)
	if err != nil && strings.Contains(err.Error(), "Create a new file") {
		db, err = tryBadger(o)
	}
	switch {
	case err == nil:
		return db, nil
	case strings.Contains(err.Error(), "Cannot acquire directory lock"):
		return nil, fmt.Errorf("%w in %s: ask the running daemon through its API, or stop it first", ErrLocked, o.Dir)
	}
	return nil, fmt.Errorf("%w: %s cannot be opened: %w; move it away or restore a backup", ErrFailed, o.Dir, err)
}

func tryBadger(o badger.Options) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: badger panicked: %v", ErrDamaged, p)
		}
	}()
	return badger.Open(o)
}

// badgerLog hands Badger's complaints on, and keeps its chatter.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) Errorf(f string, a ...any)   { l.log.Error(text(f, a)) }
func (l badgerLog) Warningf(f string, a ...any) { l.log.Warn(text(f, a)) }
func (l badgerLog) Infof(string, ...any)        {}
func (l badgerLog) Debugf(string, ...any)       {}

func text(f string, a []any) string { return "badger: " + strings.TrimSpace(fmt.Sprintf(f, a...)) }
