package kv

import (
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
	db := &DB{options: o, log: o.Log, failed: make(chan struct{})}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	options := badgerOptions(dir, db.log)
	if dir != "" {
		db.disk = &disk{dir: dir, minFree: o.MinFree}
		if err := db.disk.prepareDir(); err != nil {
			return nil, err
		}
		if err := verify(options); err != nil {
			return nil, err
		}
	}
	var err error
	if db.badger, err = openBadger(options); err != nil {
		return nil, err
	}
	if dir != "" {
		db.compactor = newCompactor(db.badger, db.disk, db.log)
	}
	return db, nil
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
		WithNumCompactors(0).WithNumLevelZeroTables(compactAt - 1) // see compactor.go; Flatten merges more than these
}

func openBadger(o badger.Options) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: badger panicked: %v", ErrDamaged, p)
		}
	}()
	db, err = badger.Open(o)
	switch {
	case err == nil:
		return db, nil
	case strings.Contains(err.Error(), "Cannot acquire directory lock"):
		return nil, locked(o.Dir)
	}
	return nil, fmt.Errorf("%w: %s cannot be opened: %w; move it away or restore a backup", ErrFailed, o.Dir, err)
}

// badgerLog logs the errors and warnings of Badger, and drops its other lines.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) Errorf(f string, a ...any)   { l.log.Error(text(f, a)) }
func (l badgerLog) Warningf(f string, a ...any) { l.log.Warn(text(f, a)) }
func (l badgerLog) Infof(string, ...any)        {}
func (l badgerLog) Debugf(string, ...any)       {}

func text(f string, a []any) string { return "badger: " + strings.TrimSpace(fmt.Sprintf(f, a...)) }
