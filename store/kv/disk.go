package kv

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Badger writes through sparse memory maps: where the disk has no space for a
// page, the kernel kills the process. So space is allocated beforehand. The logs
// get their blocks. A write is refused while so little is free that the tables
// written because of it might not fit, even if another process fills the disk
// meanwhile, unless it is allowed on a full disk and fits into the current log. And
// a reserve file is removed for what Badger writes when it is closed and opened.

const (
	leastMinFree = 32 << 20
	mostMinFree  = 256 << 20
	reserveName  = "RESERVE"
	reserveSize  = 3 * memTableSize // a table for each memtable, and a new log
)

// disk manages the free space for one database. A nil disk has space for everything.
type disk struct {
	dir     string
	minFree uint64 // bytes; 0: a twentieth of the disk, between the two bounds above

	// The writer's own:
	allocated map[string]bool // the logs whose blocks are allocated
	listing   listing         // of the directory, when they were
	logged    int64           // bytes in use of the current log, at most
	last      int64           // of these those of the last commit
	reserved  atomic.Bool     // read by all
}

// check returns why no ordinary write is allowed now, or nil.
func (d *disk) check() error {
	if d == nil {
		return nil
	}
	st, err := d.statfs()
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
	return d.compareFree(st, need)
}

// requireFree returns why so many bytes cannot be written now, or nil.
func (d *disk) requireFree(need uint64) error {
	if d == nil {
		return nil
	}
	st, err := d.statfs()
	if err != nil {
		return err
	}
	return d.compareFree(st, need)
}

func (d *disk) statfs() (st unix.Statfs_t, err error) {
	if err := unix.Statfs(d.dir, &st); err != nil {
		return st, fmt.Errorf("statfs: %w", err)
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return st, unix.EROFS
	}
	return st, nil
}

func (d *disk) compareFree(st unix.Statfs_t, need uint64) error {
	if free := st.Bavail * uint64(st.Bsize); free < need {
		return fmt.Errorf("%w: %d bytes are free in %s, %d are needed", ErrDiskFull, free, d.dir, need)
	}
	return nil
}

// fitsLog reports whether the current log has space for a batch, so that Badger
// writes nothing else. Only the writer calls it.
func (d *disk) fitsLog(s size) bool {
	const limit = memTableSize / 16 * 15 // at memTableSize Badger begins another log
	return d != nil && d.reserved.Load() && d.logged+logSize(s) < limit
}

// needsRotation reports whether the current log has little space left for the
// writes that are allowed on a full disk. Only the writer calls it.
func (d *disk) needsRotation() bool {
	const limit = memTableSize / 8 * 5
	return d != nil && d.logged > limit && d.allocate() == nil && d.logged > limit
}

// logSize is an upper bound, in bytes, of what a batch takes in a log and in
// memory: there a key takes some 40 bytes that Badger's estimate leaves out, and a
// commit some 60.
func logSize(s size) int64 { return s.bytes + 64*(s.keys+2) }

// prepare makes sure that there is space for a commit. Only the writer calls it.
func (d *disk) prepare(s size) error {
	if d == nil {
		return nil
	}
	if err := d.allocateFor(s); err != nil || d.reserved.Load() {
		return err
	}
	return d.reserve()
}

// allocateFor allocates the blocks of the logs, and counts the bytes of a commit.
func (d *disk) allocateFor(s size) error {
	if err := d.allocate(); err != nil {
		return err
	}
	d.last = logSize(s)
	d.logged += d.last
	return nil
}

// reserve creates the reserve file.
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

// release removes the reserve file.
func (d *disk) release() {
	if d != nil {
		_ = os.Remove(filepath.Join(d.dir, reserveName))
		d.reserved.Store(false)
	}
}
