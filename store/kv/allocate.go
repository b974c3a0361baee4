package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// listing is when a directory was read, and when it had been changed before.
type listing struct{ changed, read time.Time }

// settled is how long before its reading a directory was changed at least, if a later change
// has a later time: the clock of the kernel for file systems is a few ms behind.
const settled = 100 * time.Millisecond

// current reports whether the directory is as it was read. It also proves that a file
// descriptor is free, as reading does: Badger may need one.
func (l listing) current(dir string) (bool, error) {
	var st unix.Stat_t
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return false, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	return l.changed.Equal(time.Unix(st.Mtim.Unix())) && l.read.Sub(l.changed) > settled, nil
}

// allocate allocates the blocks of the logs that Badger has begun since the last call.
func (d *disk) allocate() error {
	current, err := d.listing.current(d.dir)
	if current || err != nil {
		return err
	}
	began := time.Now()
	info, err := os.Stat(d.dir)
	if err != nil {
		return err
	}
	if err := d.allocateLogs(); err != nil {
		return err
	}
	d.listing = listing{changed: info.ModTime(), read: began}
	return nil
}

func (d *disk) allocateLogs() error {
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
