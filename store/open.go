package store

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// Open opens the store in dir, or creates one. An empty dir keeps it in memory,
// for tests. Its error is ErrLocked, ErrDamaged, ErrNewer or ErrFailed.
func Open(dir string, o Options) (*Store, error) {
	s, err := open(dir, o, migrations())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// CheckLock returns ErrLocked if a process has the store in dir open, or why that is unknown.
func CheckLock(dir string) error { return kv.CheckLock(dir) }

func open(dir string, o Options, steps []migration) (*Store, error) {
	s := &Store{
		now:     o.Now,
		log:     o.Log,
		commit:  func(commit func() error) error { return commit() },
		turns:   turns{more: make(chan struct{}, 1)},
		closing: make(chan struct{}),
	}
	s.Incarnations, s.batch = &Incarnations{store: s}, &batch{s: s}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	s.db, err = kv.Open(dir, kv.Options{
		Log:     s.log,
		MinFree: o.MinFree,
		Observe: func(took time.Duration) { s.metrics.observe(took) },
		Commit:  func(commit func() error) error { return s.commit(commit) },
	})
	if err != nil {
		return nil, err
	}
	err = s.start(steps)
	if err == nil {
		s.metrics, err = newMetrics(o.Registerer)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start begins to write, and migrates the store to this version.
func (s *Store) start(steps []migration) error {
	version, err := s.load()
	if err != nil {
		return err
	}
	s.latest = latest{since: s.rev.Load(), of: map[objectRef]uint64{}}
	s.changes = newRing(keptChanges, 0, Change{Revision: s.rev.Load()})
	go work(s)
	if err := s.migrate(version, steps); err != nil {
		return err
	}
	return s.identify(version == 0)
}

// identify gives the store its incarnation and its checkpoint. A store without a
// checkpoint was restored, or somebody has removed it, and may be an older copy of itself:
// it begins another incarnation, under the id that it had, so that its containers
// still belong to it.
func (s *Store) identify(isNew bool) error {
	incarnations := len(s.Incarnations.all())
	found, err := s.db.CompareCheckpoint(s.id, s.rev.Load())
	if err == nil && incarnations == 0 {
		incarnations, err = 1, s.Incarnations.begin(0, 0)
	}
	if err == nil && !found && !isNew {
		s.log.Warn("the store was restored, or its file MARK was removed: it continues in a new epoch", "revision", s.rev.Load())
		err = s.Incarnations.begin(incarnations, s.rev.Load())
	}
	if err != nil {
		return err
	}
	return s.db.StartCheckpoint(s.id, s.rev.Load())
}

// load reads the revision, the incarnations and the version: 0 if the store is new.
func (s *Store) load() (version uint64, err error) {
	err = s.View(func(tx *Tx) error {
		rev, err := tx.number(revisionKey)
		if err != nil {
			return err
		}
		_, newest, err := eventLog.bounds(tx)
		if err != nil {
			return err
		}
		s.rev.Store(rev)
		s.Incarnations.opened = rev
		if err := s.Incarnations.load(tx); err != nil {
			return err
		}
		s.events = newRing(keptEvents, newest, v1.Event{})
		version, s.id, err = schema(tx)
		return err
	})
	if err == nil {
		_, err = s.db.CompareCheckpoint(s.id, s.rev.Load())
	}
	return version, err
}
