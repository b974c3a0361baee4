package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// viewWait bounds how long a view waits for Badger to be opened again.
const viewWait = 5 * time.Second

// broken refuses writes from now on. After a failed commit the content of the disk is
// unknown, and Badger may have no table to write to: it has to be closed and opened
// again.
func (db *DB) broken(err error) error {
	err = fmt.Errorf("%w: commit: %w", ErrFailed, err)
	db.fault.Store(&err)
	db.log.Error("the store could not be written; it is opened again", "err", err)
	return err
}

// NeedsRepair reports whether Repair may help.
func (db *DB) NeedsRepair() bool { return db.disk != nil && db.Fault() != nil }

// Repair opens Badger again after a batch was given up, calls adopt with the
// content, which may be that of the batch all the same, and allows writes again.
func (db *DB) Repair(adopt func(*Txn) error) error {
	if err := db.reopen(); err != nil {
		return err
	}
	if err := db.View(adopt); err != nil {
		return err
	}
	db.fault.Store(nil)
	db.log.Info("the store was opened again, and is written again")
	return nil
}

// reopen closes Badger and opens it again. The views in flight end first; those
// that begin meanwhile wait.
func (db *DB) reopen() error {
	if db.disk == nil {
		return errors.New("it is in memory")
	}
	if err := db.disk.probe(); err != nil {
		return err
	}
	reopened := make(chan struct{})
	db.mu.Lock()
	old, compactor := db.badger, db.compactor
	db.badger, db.compactor, db.reopened = nil, nil, reopened
	db.mu.Unlock()
	defer close(reopened)
	compactor.close()
	db.views.Wait()
	closeBadger(old)
	b, err := db.openFiles()
	if err != nil {
		return err
	}
	err = db.options.accept(b)
	if err == nil {
		err = db.wal.replay(db, b)
	}
	if err != nil {
		closeBadger(b)
		return err
	}
	db.logged.Store(false)
	db.mu.Lock()
	db.badger, db.compactor = b, newCompactor(b, db.disk, db.log)
	db.mu.Unlock()
	return nil
}

// accept calls Check with the content of b.
func (o Options) accept(b *versioned) error {
	if o.Check == nil {
		return nil
	}
	t := newTxn(b, false)
	defer t.discard()
	return o.Check(t)
}

// closeBadger closes a Badger that may be broken.
func closeBadger(b *versioned) {
	if b == nil {
		return
	}
	defer func() { _ = recover() }() // its memory is on the disk, or was never acknowledged
	_ = b.Close()
}

const probeFiles = 8

// probe returns why Badger could not be closed and opened now: that takes space,
// and file descriptors.
func (d *disk) probe() error {
	if err := d.requireFree(2 * memTableSize); err != nil {
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

// borrow returns Badger for a view, which must call db.views.Done.
func (db *DB) borrow() (*versioned, error) {
	for waited := false; ; waited = true {
		db.mu.RLock()
		b, closed, reopened := db.badger, db.closed, db.reopened
		if !closed && b != nil {
			db.views.Add(1)
		}
		db.mu.RUnlock()
		switch {
		case closed:
			return nil, ErrClosed
		case b != nil:
			return b, nil
		case waited:
			return nil, fmt.Errorf("%w: it is being opened again", ErrFailed)
		}
		select {
		case <-reopened:
		case <-time.After(viewWait): // a view within a view would wait for itself
		}
	}
}
