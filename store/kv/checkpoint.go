package kv

import (
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/dgraph-io/ristretto/v2/z"
	"golang.org/x/sys/unix"
)

// checkpoint is a small file beside Badger's. It holds the id of the store, the
// revision that was last on the disk, and the time at which the file itself was
// created. Badger opens a truncated or damaged log as an older state, without an
// error; the checkpoint shows it. It is written after each commit and not synced:
// after a power failure it may be behind the store, never ahead. A copy of the
// file was created at another time than the file holds: so a store that was
// copied back is recognised.
type checkpoint struct {
	f      *os.File
	id     string
	birth  uint64
	log    *slog.Logger
	failed atomic.Bool // and logged
}

const checkpointName = "MARK"

// Origin is what the checkpoint shows about the files beside it.
type Origin uint8

// The origins of a database.
const (
	InPlace      Origin = iota // it is where it was written, or nothing is known
	NoCheckpoint               // it is new, or an operator has removed the file to accept the content
	Copied                     // it was copied here
)

// CompareCheckpoint compares the checkpoint with the id and the revision that
// the database holds; an empty database has no id. Its error wraps ErrDamaged if
// the checkpoint is of another id or a later revision. A database in memory is
// always in place.
func (db *DB) CompareCheckpoint(id string, rev uint64) (Origin, error) {
	if db.disk == nil {
		return InPlace, nil
	}
	return compareCheckpoint(db.disk.dir, id, rev)
}

// StartCheckpoint begins to write the checkpoint.
func (db *DB) StartCheckpoint(id string, rev uint64) (err error) {
	if db.disk != nil {
		db.checkpoint, err = newCheckpoint(db.disk.dir, id, rev, db.log)
	}
	return err
}

// Checkpoint records that a revision is on the disk.
func (db *DB) Checkpoint(rev uint64) { db.checkpoint.set(rev) }

func compareCheckpoint(dir, id string, rev uint64) (Origin, error) {
	name := filepath.Join(dir, checkpointName)
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return NoCheckpoint, nil
	}
	if err != nil {
		return InPlace, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	was, ok := parseCheckpoint(string(b))
	switch {
	case !ok:
		return InPlace, nil // a power failure truncated it; it is written again
	case id == "":
		return InPlace, fmt.Errorf("%w: %s is empty, but held store %s at revision %d; restore a backup, or remove the file %s to start with an empty store, which never touches the containers of that one", ErrDamaged, dir, was.id, was.rev, checkpointName)
	case id != was.id:
		return InPlace, fmt.Errorf("%w: %s holds store %s, but held %s; %s", ErrDamaged, dir, id, was.id, remedy)
	case rev < was.rev:
		return InPlace, fmt.Errorf("%w: %s is at revision %d, but was at %d; %s", ErrDamaged, dir, rev, was.rev, remedy)
	case was.birth != 0 && was.birth != birthOf(name):
		return Copied, nil
	}
	return InPlace, nil
}

const remedy = "restore a backup, or remove the file " + checkpointName +
	" to continue with the remaining content: containers with a record are adopted, newer ones are kept and named in the log, and a new epoch begins"

// checkpointLine is the content of the file. A berth of schema version 1 wrote no birth.
type checkpointLine struct {
	id         string
	rev, birth uint64 // birth in ns since 1970; 0: not known
}

// String always returns the same number of bytes.
func (l checkpointLine) String() string {
	return withChecksum(fmt.Sprintf("%s %020d %020d", l.id, l.rev, l.birth))
}

func withChecksum(text string) string {
	return fmt.Sprintf("%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

func parseCheckpoint(text string) (l checkpointLine, ok bool) {
	text, _, _ = strings.Cut(text, "\n")
	text += "\n"
	if _, err := fmt.Sscanf(text, "%32s %d %d ", &l.id, &l.rev, &l.birth); err == nil && text == l.String() {
		return l, true
	}
	l.birth = 0
	_, err := fmt.Sscanf(text, "%32s %d ", &l.id, &l.rev)
	return l, err == nil && text == withChecksum(fmt.Sprintf("%s %020d", l.id, l.rev))
}

// birthOf returns the time at which a file was created, in ns since 1970, or 0
// if the file system does not keep it. Nobody can set it: a copy has its own.
func birthOf(name string) uint64 {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return uint64(st.Btime.Sec)*1e9 + uint64(st.Btime.Nsec)
}

func newCheckpoint(dir, id string, rev uint64, log *slog.Logger) (*checkpoint, error) {
	name := filepath.Join(dir, checkpointName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	c := &checkpoint{f: f, id: id, birth: birthOf(name), log: log}
	if err := errors.Join(c.write(rev), f.Sync(), z.SyncDir(dir)); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrFailed, err), f.Close())
	}
	return c, nil
}

func (c *checkpoint) write(rev uint64) error {
	_, err := c.f.WriteAt([]byte(checkpointLine{c.id, rev, c.birth}.String()), 0)
	return err
}

// set writes the revision. A failure only makes the checkpoint older.
func (c *checkpoint) set(rev uint64) {
	if c == nil {
		return
	}
	if err := c.write(rev); err != nil && !c.failed.Swap(true) {
		c.log.Warn("the checkpoint of the store cannot be written", "err", err)
	}
}

func (c *checkpoint) close() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.f.Sync(), c.f.Close())
}
