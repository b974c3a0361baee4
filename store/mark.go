package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// checkpoint is a small file beside Badger's that names the store, the revision that
// was last on the disk, and when the file itself was made. Badger opens a log
// that was cut or flipped without a word, as an older state; the mark tells. It
// is written after each commit and not synced: after a power cut it may be
// behind the store, never ahead. A copy of the file was made at another time
// than the file says: so a store that was copied back is recognised.
type checkpoint struct {
	f      *os.File
	id     string
	birth  uint64
	log    *slog.Logger
	failed atomic.Bool // said so already
}

const markName = "MARK"

// evidence is what the mark says about the files beside it.
type evidence uint8

const (
	own    evidence = iota // they are where they were written, or nothing is known
	none                   // there is no mark: the store is new, or it is to be taken as it is
	copied                 // they were copied here
)

// checkMark compares the mark with what the store holds.
func checkMark(dir, id string, rev uint64) (evidence, error) {
	name := filepath.Join(dir, markName)
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return own, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	was, ok := parseMark(string(b))
	switch {
	case !ok:
		return own, nil // it was cut by a power cut, and is written anew
	case id == "":
		return own, fmt.Errorf("%w: %s is empty, but held store %s at revision %d; restore a backup, or remove the file %s to begin anew: the containers of that store run on, and this one never touches them", ErrDamaged, dir, was.id, was.rev, markName)
	case id != was.id:
		return own, fmt.Errorf("%w: %s holds store %s, but held %s; %s", ErrDamaged, dir, id, was.id, accept)
	case rev < was.rev:
		return own, fmt.Errorf("%w: %s is at revision %d, but was at %d; %s", ErrDamaged, dir, rev, was.rev, accept)
	case was.birth != 0 && was.birth != birthOf(name):
		return copied, nil
	}
	return own, nil
}

const accept = "restore a backup, or remove the file " + markName +
	" to go on with what is left: containers with a record are adopted, newer ones are kept and named in the log, and a new epoch begins"

// markLine is what the mark holds. A berth of schema version 1 wrote no birth.
type markLine struct {
	id         string
	rev, birth uint64 // birth in ns since 1970; 0: not known
}

// String has one length always.
func (l markLine) String() string {
	return summed(fmt.Sprintf("%s %020d %020d", l.id, l.rev, l.birth))
}

func summed(text string) string {
	return fmt.Sprintf("%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

func parseMark(text string) (l markLine, ok bool) {
	text, _, _ = strings.Cut(text, "\n")
	text += "\n"
	if _, err := fmt.Sscanf(text, "%32s %d %d ", &l.id, &l.rev, &l.birth); err == nil && text == l.String() {
		return l, true
	}
	l.birth = 0
	_, err := fmt.Sscanf(text, "%32s %d ", &l.id, &l.rev)
	return l, err == nil && text == summed(fmt.Sprintf("%s %020d", l.id, l.rev))
}

// birthOf is when a file was made, in ns since 1970, or 0 where the file system
// does not keep that. Nobody can set it: a copy has its own.
func birthOf(name string) uint64 {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return uint64(st.Btime.Sec)*1e9 + uint64(st.Btime.Nsec)
}

// newMark begins to write the mark.
func newMark(dir, id string, rev uint64, log *slog.Logger) (*checkpoint, error) {
	name := filepath.Join(dir, markName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	m := &checkpoint{f: f, id: id, birth: birthOf(name), log: log}
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

func (m *checkpoint) write(rev uint64) error {
	_, err := m.f.WriteAt([]byte(markLine{m.id, rev, m.birth}.String()), 0)
	return err
}

// set records that rev is on the disk. A failure only makes the mark older.
func (m *checkpoint) set(rev uint64) {
	if m == nil {
		return
	}
	if err := m.write(rev); err != nil && !m.failed.Swap(true) {
		m.log.Warn("mark of the store cannot be written", "err", err)
	}
}

func (m *checkpoint) close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.f.Sync(), m.f.Close())
}
