package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Check reads the database in dir and changes nothing in it: it reads each block of each
// table, and calls read with the content. If the database was not closed, it does not
// call read: Badger replays its log at the next Open, and cannot do so without writing.
// Check takes no lock, which could keep a daemon from starting. Its error is ErrLocked,
// ErrDamaged, ErrFailed, or that of ctx or read.
func Check(ctx context.Context, dir string, read func(*Txn) error) error {
	if err := checkLock(dir); err != nil {
		return err
	}
	err := check(ctx, dir, read)
	// What a daemon has begun to change meanwhile must not be reported as damage.
	return errors.Join(checkLock(dir), err)
}

// checkLock returns ErrLocked if a process has the database in dir open.
func checkLock(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	defer f.Close() // which unlocks it
	if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return locked(dir)
	}
	return nil
}

func check(ctx context.Context, dir string, read func(*Txn) error) (err error) {
	o := badgerOptions(dir, nil).WithLogger(nil).WithReadOnly(true).WithBypassLockGuard(true)
	if err := verify(ctx, o); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil || len(logs) > 0 {
		return err
	}
	// Badger would create these.
	for _, name := range []string{"MANIFEST", "KEYREGISTRY", "DISCARD"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%w: %w", ErrFailed, err)
		}
	}
	db, err := tryBadger(o)
	if err != nil {
		return fmt.Errorf("%w: %s cannot be read: %w", ErrFailed, dir, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	t := newTxn(newVersioned(db), false)
	defer t.discard()
	return read(t)
}
