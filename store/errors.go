package store

import "errors"

// Errors that a caller can act on.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrCompacted = errors.New("older than what is kept")
	ErrTooBig    = errors.New("too big for one update")
	ErrClosed    = errors.New("store is closed")

	// ErrFailed wraps what goes wrong with the storage itself. Nothing of the
	// update that got it was kept, unless the commit itself failed twice: then
	// all of it may appear once the store has been opened anew.
	ErrFailed = errors.New("store failed")
	// ErrDiskFull comes within ErrFailed. It passes by itself when there is room again.
	ErrDiskFull = errors.New("disk is full")

	// ErrLocked, ErrDamaged and ErrNewer are reasons why Open refuses a store.
	ErrLocked  = errors.New("another berth holds the store")
	ErrDamaged = errors.New("store is damaged")
	ErrNewer   = errors.New("store was written by a newer berth")
)

var errReadOnly = errors.New("write in a read-only transaction")
