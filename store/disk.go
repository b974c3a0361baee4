package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Badger writes through sparse memory maps: where the disk has no room for a
// page, the kernel kills the process. So room is taken beforehand. The logs have
// their blocks allocated; an update is refused while so little is free that the
// tables written because of it might not fit, even if somebody else fills the
// disk meanwhile, unless it has to go on and fits into the log that is there;
// and a reserve is given up for what Badger writes when it is
// closed and opened.

const (
	leastMinFree = 32 << 20
	mostMinFree  = 256 << 20
	reserveName  = "RESERVE"
	reserveSize  = 3 * memTableSize // a table for each memtable, and a new log
)

// disk looks after the room for one store. A nil disk has room for everything.
type disk struct {
	dir     string
	minFree uint64 // bytes; 0: a twentieth of the disk, between the two bounds above

	// The writer's own:
	allocated map[string]bool // the logs whose blocks are allocated
	logged    int64           // bytes that are in use of the one that is written to, at most
	last      int64           // of these those of the last commit
	reserved  atomic.Bool     // read by all
}

// check says why nothing may be written now.
func (d *disk) check() error {
	if d == nil {
		return nil
	}
	st, err := d.state()
	if err != nil {
		return err
	}
	need := d.minFree
	if need == 0 {
		need = min(max(st.Blocks*uint64(st.Bsize)/20, leastMinFree), mostMinFree)
	}
	if !d.reserved.Load() {
		need += reserveSize
	}
	return enough(st, need)
}

// checkFree says why so many bytes cannot be written now.
func (d *disk) freeSpace(need uint64) error {
	if d == nil {
		return nil
	}
	st, err := d.state()
	if err != nil {
		return err
	}
	return enough(st, need)
}

func (d *disk) state() (st unix.Statfs_t, err error) {
	if err := unix.Statfs(d.dir, &st); err != nil {
		return st, fmt.Errorf("statfs: %w", err)
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return st, unix.EROFS
	}
	return st, nil
}

func enough(st unix.Statfs_t, need uint64) error {
	if free := st.Bavail * uint64(st.Bsize); free < need {
		return fmt.Errorf("%w: %d bytes are free, %d are needed", ErrDiskFull, free, need)
	}
	return nil
}

// has says whether the log that Badger writes to has room for so much, so that
// nothing has to be written but that. It is the writer's.
func (d *disk) has(count, size int64) bool {
	const most = memTableSize / 16 * 15 // at memTableSize it is changed for another
	return d != nil && d.reserved.Load() && d.logged+logSize(count, size) < most
}

// needsRotation says whether the log has little room left for what must be written on a
// full disk. It is the writer's.
func (d *disk) needsRotation() bool {
	const most = memTableSize / 8 * 5
	return d != nil && d.logged > most && d.allocate() == nil && d.logged > most
}

// logSize is more than so many keys and bytes take in a log, and in memory:
// there a key takes some 40 bytes that Badger's estimate does not have, and a
// commit some 60.
func logSize(count, size int64) int64 { return size + 64*(count+2) }

// prepare makes sure that there is room for a commit. It is the writer's.
func (d *disk) prepare(count, size int64) error {
	if d == nil {
		return nil
	}
	if err := d.allocate(); err != nil {
		return err
	}
	d.last = logSize(count, size)
	d.logged += d.last
	if d.reserved.Load() {
		return nil
	}
	return d.reserve()
}

// allocate gives blocks to the logs that Badger has begun since the last time.
func (d *disk) allocate() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(d.allocated))
	for _, e := range entries {
		name := e.Name()
		if !isLog(name) {
			continue
		}
		if !d.allocated[name] {
			if err := allocateFile(filepath.Join(d.dir, name)); err != nil {
				return err
			}
			if strings.HasSuffix(name, ".mem") {
				d.logged = d.last // it was begun for the last commit
			}
		}
		seen[name] = true
	}
	d.allocated = seen
	return nil
}

func isLog(name string) bool {
	return strings.HasSuffix(name, ".mem") || strings.HasSuffix(name, ".vlog") || name == "DISCARD"
}

// allocateFile gives a sparse file its blocks, as far as it is ever written.
func allocateFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // Badger is done with it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	size := min(st.Size(), memTableSize*3/2) // a log is changed once it holds memTableSize
	return fallocate(f, size)
}

// fallocate does nothing on a file system that cannot.
func fallocate(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return nil
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: %s", ErrDiskFull, filepath.Base(f.Name()))
	}
	return err
}

// reserve sets room aside.
func (d *disk) reserve() error {
	f, err := os.OpenFile(filepath.Join(d.dir, reserveName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := fallocate(f, reserveSize); err != nil {
		return err
	}
	d.reserved.Store(true)
	return nil
}

// release gives the reserve up.
func (d *disk) release() {
	if d != nil {
		_ = os.Remove(filepath.Join(d.dir, reserveName))
		d.reserved.Store(false)
	}
}
