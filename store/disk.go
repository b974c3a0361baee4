package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Badger writes through sparse memory maps: where the disk has no room for a
// page, the kernel kills the process. So room is taken beforehand. Each log has
// its blocks allocated, an update is refused while little is free, and a reserve
// is given up for what Badger writes when it is closed and opened.

const (
	defaultMinFree = 64 << 20
	reserveName    = "RESERVE"
	reserveSize    = 3 * memTableSize // a table for each memtable, and a new log
)

// disk looks after the room for one store. A nil disk has room for everything.
type disk struct {
	dir       string
	minFree   uint64
	allocated map[string]bool // the logs whose blocks are allocated; the writer's own
	reserved  bool
}

// settle takes room right after Badger was opened, as far as there is any.
func (d *disk) settle() {
	_ = d.allocate()
	d.reserved = d.reserve() == nil
}

// check says why nothing may be written now.
func (d *disk) check() error {
	if d == nil {
		return nil
	}
	_, err := d.free()
	return err
}

// free is how many bytes are free beyond those that must stay so.
func (d *disk) free() (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return 0, fmt.Errorf("statfs: %w", err)
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return 0, unix.EROFS
	}
	free := st.Bavail * uint64(st.Bsize)
	if free < d.minFree {
		return 0, fmt.Errorf("%w: %d bytes are free, %d are needed", ErrDiskFull, free, d.minFree)
	}
	return free - d.minFree, nil
}

// prepare makes sure that there is room for a commit. It is the writer's.
func (d *disk) prepare() error {
	if d == nil {
		return nil
	}
	free, err := d.free()
	if err != nil {
		return err
	}
	if err := d.allocate(); err != nil {
		return err
	}
	if !d.reserved && free > reserveSize {
		d.reserved = d.reserve() == nil
	}
	return nil
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
	err = fallocate(f, size)
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("%w: %s", ErrDiskFull, filepath.Base(path))
	}
	return err
}

// fallocate does nothing on a file system that cannot.
func fallocate(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
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
	for size := int64(reserveSize); size >= memTableSize; size -= memTableSize {
		if err = fallocate(f, size); err == nil {
			return nil
		}
	}
	return err
}

// release gives the reserve up.
func (d *disk) release() {
	if d != nil {
		_ = os.Remove(filepath.Join(d.dir, reserveName))
		d.reserved = false
	}
}
