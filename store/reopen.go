package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"

	v1 "berth/api/v1"
)

const (
	reopenEvery = time.Second     // between two attempts
	viewWait    = 5 * time.Second // that a view waits for the store to be opened anew
)

// broken ends writing. After a commit that failed nobody knows what the disk
// holds, and Badger may be left without a table to write to: it is opened anew.
func (s *Store) broken(err error) error {
	err = fmt.Errorf("%w: commit: %w", ErrFailed, err)
	s.fault.Store(&err)
	s.log.Error("the store could not be written; it is opened anew", "err", err)
	return err
}

// again commits a batch whose commit failed to the store opened anew. Whether
// nothing, a part or all of it was kept the first time, all of it is then.
func (b *batch) again(failed error) error {
	b.txn.Discard()
	b.txn = nil
	if _, err := reopen(b.s); err != nil {
		return fmt.Errorf("%w; and it could not be opened anew: %w", failed, err)
	}
	b.txn = b.s.db.NewTransaction(true)
	var errs []error
	for _, o := range b.ops {
		if o.err != nil {
			continue
		}
		for key, value := range o.tx.writes {
			errs = append(errs, write(b.txn, key, value))
		}
	}
	errs = append(errs, b.setRevision(), b.s.disk.prepare(b.count, b.size))
	if err := errors.Join(errs...); err != nil {
		return b.s.broken(err)
	}
	if err := b.s.commit(b.txn); err != nil {
		return b.s.broken(err)
	}
	b.s.fault.Store(nil)
	b.s.log.Info("the store was opened anew, and is written again")
	return nil
}

// repair opens a store anew after a batch was given up. If the batch was kept
// all the same, whoever watches reads everything again.
func repair(s *Store) {
	newest, err := reopen(s)
	if err != nil {
		s.log.Debug("the store could not be opened anew; it is tried again", "err", err)
		return
	}
	rev := s.rev.Load()
	_ = s.View(func(tx *Tx) error { rev = tx.Revision(); return nil }) // what reopen has just read
	if rev > s.rev.Load() {
		s.rev.Store(rev)
		s.mark.set(rev)
		s.changes.restart(s.changes.next+1, Change{Revision: rev})
		s.events.restart(newest, v1.Event{})
	}
	s.fault.Store(nil)
	s.log.Info("the store was opened anew, and is written again")
}

// reopen closes Badger and opens it anew, and returns the newest seq. Views that
// began before have ended then; those that begin meanwhile wait. It is the
// writer's.
func reopen(s *Store) (newest uint64, err error) {
	if s.disk == nil {
		return 0, errors.New("it is in memory")
	}
	if err := s.disk.probe(); err != nil {
		return 0, err
	}
	back := make(chan struct{})
	s.mu.Lock()
	old, merger := s.db, s.compactor
	s.db, s.compactor, s.back = nil, nil, back
	s.mu.Unlock()
	defer close(back)
	merger.close()
	s.views.Wait()
	closeBadger(old)
	s.cache.clear()
	db, err := openFiles(s)
	if err != nil {
		return 0, err
	}
	txn := db.NewTransaction(false)
	defer txn.Discard()
	tx := &Tx{store: s, txn: txn}
	rev, err := tx.number(revisionKey)
	if err == nil && rev < s.rev.Load() {
		err = fmt.Errorf("%w: it is at revision %d, but was at %d; stop berth and restore a backup", ErrDamaged, rev, s.rev.Load())
	}
	if err == nil {
		_, newest, err = tx.eventRange()
	}
	if err != nil {
		closeBadger(db)
		return 0, err
	}
	s.mu.Lock()
	s.db, s.compactor = db, newCompactor(db, s.disk, s.log)
	s.mu.Unlock()
	return newest, nil
}

// closeBadger closes what may be broken.
func closeBadger(db *badger.DB) {
	if db == nil {
		return
	}
	defer func() { _ = recover() }() // what it holds in memory is on the disk, or was never acknowledged
	_ = db.Close()
}

// probe returns why Badger could not be closed and opened now: that takes room,
// and handles.
func (d *disk) probe() error {
	if err := d.freeSpace(2 * memTableSize); err != nil {
		return err
	}
	name := filepath.Join(d.dir, "PROBE")
	defer os.Remove(name)
	for range probeFiles {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.Write([]byte("berth")); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

const probeFiles = 8

// borrow returns the database for a view, which must call s.views.Done.
func borrow(s *Store) (*badger.DB, error) {
	for waited := false; ; waited = true {
		s.mu.RLock()
		db, closed, back := s.db, s.closed, s.back
		if !closed && db != nil {
			s.views.Add(1)
		}
		s.mu.RUnlock()
		switch {
		case closed:
			return nil, ErrClosed
		case db != nil:
			return db, nil
		case waited:
			return nil, fmt.Errorf("%w: it is being opened anew", ErrFailed)
		}
		select {
		case <-back:
		case <-s.closing:
		case <-time.After(viewWait): // a view within a view would wait for itself
		}
	}
}
