package kv

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

const memTableSize = 8 << 20

// Open opens the database in dir, or creates one. An empty dir keeps it in
// memory, for tests. Its error is ErrLocked, ErrDamaged or ErrFailed.
func Open(dir string, o Options) (*DB, error) {
	db := &DB{options: o, log: o.Log}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	if dir != "" {
		db.disk = &disk{dir: dir, minFree: o.MinFree}
	}
	b, err := db.openFiles()
	if err != nil {
		return nil, err
	}
	db.badger = b
	return db, nil
}

// Start commits what a process that was killed has logged, and begins to log, see Batch.Log, and
// to merge tables. It is called once the content has proved to be readable: until then no file of
// it is changed. Its error wraps ErrFailed.
func (db *DB) Start() error {
	if db.disk == nil {
		return nil
	}
	w, err := startLog(db)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFailed, walName, err)
	}
	db.wal, db.compactor = w, newCompactor(db.badger, db.disk, db.log)
	return nil
}

// openFiles opens Badger in memory, or in a directory that it cannot harm.
func (db *DB) openFiles() (*versioned, error) {
	if db.disk == nil {
		return openBadger(badgerOptions("", db.log))
	}
	if err := db.disk.prepareDir(); err != nil {
		return nil, err
	}
	o := badgerOptions(db.disk.dir, db.log)
	if err := verify(context.Background(), o); err != nil {
		return nil, err
	}
	return openBadger(o)
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
	return o.WithSyncWrites(false). // commit calls Sync
					WithBlockCacheSize(8 << 20).WithIndexCacheSize(4 << 20).
					WithNumCompactors(0).WithNumLevelZeroTables(compactAt - 1) // see compactor.go; Flatten merges more than these
}

// openBadger opens Badger. After a kill -9 in the wrong moment the first attempt
// fails on an empty log, and removes it.
func openBadger(o badger.Options) (*versioned, error) {
	db, err := tryBadger(o)
	if err != nil && strings.Contains(err.Error(), "Create a new file") {
		db, err = tryBadger(o)
	}
	switch {
	case err == nil:
		return newVersioned(db), nil
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
	return badger.OpenManaged(o)
}

// badgerLog logs the errors and warnings of Badger, and drops its other lines.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) Errorf(f string, a ...any)   { l.log.Error(text(f, a)) }
func (l badgerLog) Warningf(f string, a ...any) { l.log.Warn(text(f, a)) }
func (l badgerLog) Infof(string, ...any)        {}
func (l badgerLog) Debugf(string, ...any)       {}

func text(f string, a []any) string { return "badger: " + strings.TrimSpace(fmt.Sprintf(f, a...)) }
