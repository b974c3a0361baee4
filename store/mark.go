package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
)

// mark is a small file beside Badger's that names the store and the revision
// that was last on the disk. Badger opens a log that was cut or flipped without
// a word, as an older state; the mark tells. It is written after each commit
// and not synced: after a power cut it may be behind the store, never ahead.
type mark struct {
	f      *os.File
	id     string
	log    *slog.Logger
	failed atomic.Bool // said so already
}

const markName = "MARK"

// checkMark compares the mark with what the store holds. A mark that is not there
// stands for a store that is new, or that is to be taken as it is.
func checkMark(dir, id string, rev uint64) (known bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, markName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	var wantID string
	var want uint64
	var sum uint32
	_, err = fmt.Sscanf(string(b), "%32s %d %x\n", &wantID, &want, &sum)
	switch {
	case err != nil || string(b) != line(wantID, want):
		return true, nil // it says nothing, and is written anew
	case id == "":
		err = fmt.Errorf("%w: %s is empty, but held store %s at revision %d; %s", ErrDamaged, dir, wantID, want, accept)
	case id != wantID:
		err = fmt.Errorf("%w: %s holds store %s, but held %s; %s", ErrDamaged, dir, id, wantID, accept)
	case rev < want:
		err = fmt.Errorf("%w: %s is at revision %d, but was at %d; %s", ErrDamaged, dir, rev, want, accept)
	}
	return true, err
}

const accept = "restore a backup, or remove the file " + markName +
	" to go on with what is left (under a new store id: containers made so far are left alone)"

// newMark begins to write the mark.
func newMark(dir, id string, rev uint64, log *slog.Logger) (*mark, error) {
	f, err := os.OpenFile(filepath.Join(dir, markName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	m := &mark{f: f, id: id, log: log}
	if err := errors.Join(m.write(rev), f.Sync(), syncDir(dir)); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrFailed, err), f.Close())
	}
	return m, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (m *mark) write(rev uint64) error {
	_, err := m.f.WriteAt([]byte(line(m.id, rev)), 0)
	return err
}

// line is what the mark holds: id, revision and a checksum, of one length always.
func line(id string, rev uint64) string {
	text := fmt.Sprintf("%s %020d", id, rev)
	return fmt.Sprintf("%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

// set notes that rev is on the disk. A failure only makes the mark older.
func (m *mark) set(rev uint64) {
	if m == nil {
		return
	}
	if err := m.write(rev); err != nil && !m.failed.Swap(true) {
		m.log.Warn("mark of the store cannot be written", "err", err)
	}
}

func (m *mark) close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.f.Sync(), m.f.Close())
}
