package kv

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"github.com/dgraph-io/ristretto/v2/z"
)

// checkpoint is a small file beside Badger's. It holds the id of the store and the
// revision that was last on the disk. Badger opens a truncated or damaged log as an
// older state, without an error; the checkpoint shows it. It is written after each
// commit and not synced: after a power failure it may be behind the store, never ahead.
type checkpoint struct {
	f    *os.File
	id   string
	warn sync.Once
}

const checkpointName = "MARK"

// CompareCheckpoint compares the checkpoint with the id and the revision that
// the database holds; an empty database has no id. Its error wraps ErrDamaged if
// the checkpoint is of another id or a later revision. Without a checkpoint, found is false: the
// database is new, was restored, or an operator has removed the file to accept the content. A
// database in memory always has one.
func (db *DB) CompareCheckpoint(id string, rev uint64) (found bool, err error) {
	if db.disk == nil {
		return true, nil
	}
	dir := db.disk.dir
	b, err := os.ReadFile(filepath.Join(dir, checkpointName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	wasID, wasRev, ok := parseCheckpoint(string(b))
	switch {
	case !ok: // a power failure truncated it; it is written again
	case id == "":
		err = fmt.Errorf("%w: %s is empty, but held store %s at revision %d; restore a backup, or remove the file %s to start with an empty "+
			"store, which never touches the containers of that one", ErrDamaged, dir, wasID, wasRev, checkpointName)
	case id != wasID:
		err = fmt.Errorf("%w: %s holds store %s, but held %s; %s", ErrDamaged, dir, id, wasID, remedy)
	case rev < wasRev:
		err = fmt.Errorf("%w: %s is at revision %d, but was at %d; %s", ErrDamaged, dir, rev, wasRev, remedy)
	}
	return true, err
}

const remedy = "restore a backup, or remove the file " + checkpointName +
	" to continue with the remaining content: containers with a record are adopted, newer ones are kept and named in the log, and a new " +
	"epoch begins"

// formatCheckpoint returns the content of the file. It always has the same number of bytes.
func formatCheckpoint(id string, rev uint64) string {
	text := fmt.Sprintf("%s %020d", id, rev)
	return fmt.Sprintf("%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

func parseCheckpoint(text string) (id string, rev uint64, ok bool) {
	_, err := fmt.Sscanf(text, "%32s %d ", &id, &rev)
	return id, rev, err == nil && text == formatCheckpoint(id, rev)
}

// CheckpointID returns the id in the checkpoint of the database in dir, which another process may have open; empty:
// there is none.
func CheckpointID(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, checkpointName))
	id, _, ok := parseCheckpoint(string(text))
	if !ok {
		return ""
	}
	return id
}

// StartCheckpoint begins to write the checkpoint.
func (db *DB) StartCheckpoint(id string, rev uint64) error {
	if db.disk == nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(db.disk.dir, checkpointName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	c := &checkpoint{f: f, id: id}
	if err := errors.Join(c.write(rev), f.Truncate(int64(len(formatCheckpoint(id, rev)))), f.Sync(), z.SyncDir(db.disk.dir)); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrFailed, err), f.Close())
	}
	db.checkpoint = c
	return nil
}

// Checkpoint records that a revision is on the disk. A failure only makes the checkpoint older.
func (db *DB) Checkpoint(rev uint64) {
	c := db.checkpoint
	if c == nil {
		return
	}
	if err := c.write(rev); err != nil {
		c.warn.Do(func() { db.log.Warn("the checkpoint of the store cannot be written", "err", err) })
	}
}

func (c *checkpoint) write(rev uint64) error {
	_, err := c.f.WriteAt([]byte(formatCheckpoint(c.id, rev)), 0)
	return err
}

func (c *checkpoint) close() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.f.Sync(), c.f.Close())
}
