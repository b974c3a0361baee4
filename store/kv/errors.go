package kv

import "errors"

// Errors that a caller can act on.
var (
	ErrNotFound  = errors.New("not found")
	ErrTooBig    = errors.New("too big for one update")
	ErrBatchFull = errors.New("batch is full")
	ErrClosed    = errors.New("store is closed")

	// ErrFailed wraps every failure of the storage itself. Nothing of the batch was stored,
	// unless Badger's own commit failed, see DB.Failed: then all of it may appear at the next
	// start.
	ErrFailed = errors.New("store failed")
	// ErrDiskFull comes within ErrFailed. It passes when there is space again.
	ErrDiskFull = errors.New("disk is full")

	// ErrLocked and ErrDamaged are reasons why Open refuses a directory.
	ErrLocked  = errors.New("another berth holds the store")
	ErrDamaged = errors.New("store is damaged")
)
