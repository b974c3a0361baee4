package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	leastMinFree   = 32 << 20
	mostMinFree    = 256 << 20
	leastFreeFiles = 64
	reserveName    = "RESERVE"
	reserveSize    = 3 * memTableSize // a table for each memtable, and a new log
)

// disk manages the free space for one database. A nil disk has space for everything.
type disk struct {
	dir     string
	minFree uint64 // bytes; 0: a twentieth of the disk, between the two bounds above

	// The writer's own:
	allocated map[string]bool // the logs whose blocks are allocated
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
	if st.Files > 0 && st.Ffree < leastFreeFiles { // Badger could not begin a log or a table
		return fmt.Errorf("%w: %d files can be created in %s, %d are needed", ErrDiskFull, st.Ffree, d.dir, leastFreeFiles)
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
	const limit = memTableSize / 64 * 63 // at memTableSize Badger begins another log
	return d != nil && (d.reserved.Load() || d.restore() == nil) && d.logged+logSize(s) < limit
}

// logSize is an upper bound, in bytes, of what a batch takes in a log, where a key takes up to 12
// bytes and a commit 48 that Badger's estimate leaves out, and in memory, where a key takes up to
// 32 such bytes on average: the levels of its skip list are random, and a time to live takes 4.
func logSize(s size) int64 { return s.bytes + max(12*s.keys+48, 33*s.keys) }

// prepare makes sure that there is space for a commit. Only the writer calls it.
func (d *disk) prepare(s size) error {
	if d == nil {
		return nil
	}
	if err := d.allocate(); err != nil {
		return err
	}
	d.last = logSize(s)
	d.logged += d.last
	if d.reserved.Load() {
		return nil
	}
	return d.reserve(reserveSize)
}

// allocate allocates the blocks of the logs that Badger has begun since the last call. It also
// proves that a file descriptor is free: Badger may need one.
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
				d.logged = d.last // Badger began it for the last commit
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

// allocateFile allocates the blocks of a sparse file, as far as it is ever written.
func allocateFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // Badger has removed it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	size := min(st.Size(), memTableSize*3/2) // Badger begins another log once it holds memTableSize
	return fallocate(f, size)
}

// fallocate does nothing on a file system that does not support it.
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

// restore allocates the logs and the reserve on a disk that was full when Badger was opened. What
// Badger has written then may be missing for a whole reserve: the space of a table, for the present
// log, and of a new log are enough.
func (d *disk) restore() error {
	if err := d.allocate(); err != nil {
		return err
	}
	err := d.reserve(reserveSize)
	if errors.Is(err, ErrDiskFull) {
		err = d.reserve(2 * memTableSize)
	}
	return err
}

// reserve creates the reserve file.
func (d *disk) reserve(size int64) error {
	f, err := os.OpenFile(filepath.Join(d.dir, reserveName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := fallocate(f, size); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
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
