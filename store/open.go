package store

import (
	"errors"
	"fmt"
	"log/slog"
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
	s, err := open(dir, o, migrations())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

func open(dir string, o Options, steps []migration) (*Store, error) {
	s := &Store{
		now:     o.Now,
		log:     o.Log,
		commit:  commit,
		ops:     make(chan *op),
		closing: make(chan struct{}),
		written: make(chan struct{}),
	}
	s.History = &History{store: s}
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

// openDisk opens Badger, once the directory looks as if that can do no harm.
func (s *Store) openDisk(dir string, minFree uint64) (err error) {
	if dir != "" {
		s.disk = &disk{dir: dir, minFree: minFree}
	}
	s.db, err = openFiles(s)
	return err
}

// openFiles opens Badger in the directory of s, or in memory.
func openFiles(s *Store) (*badger.DB, error) {
	if s.disk == nil {
		return openBadger(badgerOptions("", s.log))
	}
	if err := s.disk.enter(); err != nil {
		return nil, err
	}
	o := badgerOptions(s.disk.dir, s.log)
	if err := verify(o); err != nil {
		return nil, err
	}
	return openBadger(o)
}

// start begins to write, and makes the store one of this version.
func (s *Store) start(dir string, steps []migration) error {
	version, err := s.load(dir)
	if err != nil {
		close(s.written)
		return err
	}
	s.changes = newRing(keptChanges, 0, Change{Revision: s.rev.Load()})
	if dir != "" {
		s.compactor = newCompactor(s.db, s.disk, s.log)
	}
	go s.write()
	if err := s.migrate(version, steps); err != nil {
		return err
	}
	return s.identify(dir, version == 0)
}

// identify gives the store its incarnation and its mark. A store that was copied
// here, or whose mark was removed, may be an older copy of itself: it begins
// another incarnation, under the id that it had, so that its containers stay its.
func (s *Store) identify(dir string, fresh bool) (err error) {
	found, were := own, len(s.History.all())
	if dir != "" {
		found, err = checkMark(dir, s.id, s.rev.Load())
	}
	if err == nil && were == 0 {
		were, err = 1, s.History.begin(0, 0)
	}
	if err == nil && found != own && !fresh {
		s.log.Warn("the store was copied here, or its mark was removed: it goes on in a new epoch", "revision", s.rev.Load())
		err = s.History.begin(were, s.rev.Load())
	}
	if err == nil && dir != "" {
		s.mark, err = newMark(dir, s.id, s.rev.Load(), s.log)
	}
	return err
}

// load reads what the store goes on from, and its version: 0 if it is new.
func (s *Store) load(dir string) (version uint64, err error) {
	err = s.View(func(tx *Tx) error {
		rev, err := tx.number(revisionKey)
		if err != nil {
			return err
		}
		_, newest, err := tx.eventRange()
		if err != nil {
			return err
		}
		s.rev.Store(rev)
		s.History.opened = rev
		if err := s.History.recall(tx); err != nil {
			return err
		}
		s.events = newRing(keptEvents, newest, v1.Event{})
		version, s.id, err = schema(tx)
		return err
	})
	if err == nil && dir != "" {
		_, err = checkMark(dir, s.id, s.rev.Load())
	}
	return version, err
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
			WithNumCompactors(0).WithNumLevelZeroTables(1 << 20).WithNumLevelZeroTablesStall(1<<20 + 1)
	}
	return o.WithSyncWrites(true).
		WithBlockCacheSize(8 << 20).WithIndexCacheSize(4 << 20).
		WithNumCompactors(0).WithNumLevelZeroTables(compactAt - 1) // see merger.go; Flatten merges more than these
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
		return nil, locked(o.Dir)
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
