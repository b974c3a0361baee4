package kv

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/ristretto/v2/z"
	"golang.org/x/sys/unix"
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
		if err := errors.Join(verify(options), verifyEmpty(options)); err != nil {
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
	return nil, fmt.Errorf("%w: %s cannot be opened: %w; restore a backup, or move the directory away to start with an empty store, "+
		"which never touches the containers of this one", ErrFailed, o.Dir, err)
}

// badgerLog logs the errors and warnings of Badger, and drops its other lines.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) Errorf(f string, a ...any)   { l.log.Error(text(f, a)) }
func (l badgerLog) Warningf(f string, a ...any) { l.log.Warn(text(f, a)) }
func (l badgerLog) Infof(string, ...any)        {}
func (l badgerLog) Debugf(string, ...any)       {}

func text(f string, a []any) string { return "badger: " + strings.TrimSpace(fmt.Sprintf(f, a...)) }

// prepareDir creates the directory, or returns why Badger must not open it.
func (d *disk) prepareDir() error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := d.waitForLock(); err != nil {
		return err
	}
	files := map[string]int{} // by name and by extension
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	for _, e := range entries {
		files[filepath.Ext(e.Name())]++
		files[e.Name()]++
		d.removeEmptyLog(e)
	}
	if files[".sst"] > 0 && files["MANIFEST"] == 0 {
		// Badger would take the tables for leftovers, and remove them.
		return fmt.Errorf("%w: %s has %d tables but no MANIFEST; restore a backup, or move the directory away to start with an empty store",
			ErrDamaged, d.dir, files[".sst"])
	}
	d.release()
	if err := d.requireFree(uint64(files[".mem"]*memTableSize + 2<<20)); err != nil { // Badger writes these logs into tables
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}

// removeEmptyLog removes a log that a kill left without even its header. Badger cannot open it.
func (d *disk) removeEmptyLog(e os.DirEntry) {
	st, err := e.Info()
	ext := filepath.Ext(e.Name())
	if err == nil && st.Size() == 0 && (ext == ".mem" || ext == ".vlog") {
		_ = os.Remove(filepath.Join(d.dir, e.Name()))
	}
}

// lockWait is how long Open waits for a lock. A berth that is killed while it
// starts a tool leaves a process that holds the lock until the tool runs.
const lockWait = time.Second

// waitForLock waits until nobody holds the lock that Badger takes on the directory.
func (d *disk) waitForLock() error {
	for until := time.Now().Add(lockWait); ; time.Sleep(lockWait / 50) {
		err := CheckLock(d.dir)
		if !errors.Is(err, ErrLocked) || time.Now().After(until) {
			return err
		}
	}
}

// CheckLock returns ErrLocked if a process has the database in dir open, or why that is unknown.
func CheckLock(dir string) error {
	unlock, err := Lock(dir)
	if err == nil {
		unlock()
	}
	return err
}

// Lock takes the lock of the database in dir: until unlock, no process can open it. Its error is
// ErrLocked if one has it open.
func Lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, errors.Join(locked(dir), f.Close())
	case err != nil:
		return nil, fmt.Errorf("%w: lock %s: %w", ErrFailed, dir, errors.Join(err, f.Close()))
	}
	return func() { _ = f.Close() }, nil
}

func locked(dir string) error {
	return fmt.Errorf("%w in %s: use the running one through its API, or stop it first", ErrLocked, dir)
}

// verify reads every block of the tables that Badger is about to open. Badger
// itself ends a scan early at a bad block, without an error, and panics in a
// goroutine of its own on a truncated table.
func verify(o badger.Options) error {
	f, err := os.Open(filepath.Join(o.Dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	defer f.Close()
	manifest, _, err := badger.ReplayManifestFile(f, o.ExternalMagicVersion, o)
	if err != nil {
		return damaged(f.Name(), err)
	}
	for id := range manifest.Tables {
		name := table.NewFilename(id, o.Dir)
		if err := verifyTable(name, o); err != nil {
			return damaged(name, err)
		}
	}
	return nil
}

func damaged(name string, err error) error {
	return fmt.Errorf("%w: %s: %w; restore a backup, or move the directory away to start with an empty store, which never touches the "+
		"containers of this one", ErrDamaged, name, err)
}

// verifyEmpty reads the files that Badger makes anew where they are missing, and that have no data here: values
// stay beside their keys, and nothing is encrypted. Badger opens nothing if one of them is damaged.
func verifyEmpty(o badger.Options) error {
	const lost = "%w: %s: %w; remove this file and start berth again: it has no data, and nothing is lost without it"
	keys, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{Dir: o.Dir, ReadOnly: true})
	if failed := new(os.PathError); errors.As(err, &failed) {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err != nil {
		return fmt.Errorf(lost, ErrDamaged, filepath.Join(o.Dir, badger.KeyRegistryFileName), err)
	}
	if err := keys.Close(); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	logs, _ := filepath.Glob(filepath.Join(o.Dir, "*.vlog")) // its only error is that of the pattern
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFailed, err)
		}
		var key [8]byte // the id of the key that it is encrypted with
		_, err = io.ReadFull(f, key[:])
		if _ = f.Close(); err == nil && key != [8]byte{} {
			return fmt.Errorf(lost, ErrDamaged, name, errors.New("its header is damaged"))
		}
	}
	return nil
}

// verifyTable verifies a table with Badger's own function.
func verifyTable(name string, o badger.Options) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("it is not a readable table")
		}
	}()
	file, err := z.OpenMmapFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	t, err := table.OpenTable(file, table.Options{
		ReadOnly:    true,
		BlockSize:   o.BlockSize,
		Compression: o.Compression,
		ChkMode:     options.OnTableRead,
	})
	if err != nil {
		return err
	}
	return t.Close(-1)
}
