package store

import (
	"errors"

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

	// ErrLocked, ErrDamaged and ErrNewer are reasons why Open refuses a store.
	ErrLocked  = kv.ErrLocked
	ErrDamaged = kv.ErrDamaged
	ErrNewer   = errors.New("store was written by a newer berth")
)

var errReadOnly = errors.New("write in a read-only transaction")
