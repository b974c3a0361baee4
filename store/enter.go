package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// enter makes the directory, or says why Badger must not be let into it.
func (d *disk) enter() error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := d.lockable(); err != nil {
		return err
	}
	files := map[string]int{} // by their endings
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	for _, e := range entries {
		files[filepath.Ext(e.Name())]++
		files[e.Name()]++
		d.sweep(e)
		d.protect(e)
	}
	if files[".sst"] > 0 && files["MANIFEST"] == 0 {
		// Badger would take the tables for leftovers, and remove them.
		return fmt.Errorf("%w: %s has %d tables but no MANIFEST; restore a backup, or move the directory away to begin anew", ErrDamaged, d.dir, files[".sst"])
	}
	d.release()
	d.allocated, d.logged, d.last = nil, 0, 0
	return d.openable(files[".mem"])
}

// sweep removes a log that a kill left without even its header. Badger would
// do so too, but fail, and leave the goroutines of that attempt behind.
func (d *disk) sweep(e os.DirEntry) {
	st, err := e.Info()
	if err == nil && st.Size() == 0 && filepath.Ext(e.Name()) == ".mem" {
		_ = os.Remove(filepath.Join(d.dir, e.Name()))
	}
}

// protect takes a file's permissions from all but its owner: an older berth made
// files with the umask that it was started with.
func (d *disk) protect(e os.DirEntry) {
	st, err := e.Info()
	if err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o077 != 0 {
		_ = os.Chmod(filepath.Join(d.dir, e.Name()), 0o600) // not ours to change: it is used as it is
	}
}

// lockWait is how long a lock is waited for. A berth that is killed while it
// begins a tool leaves a process that holds the lock until the tool runs.
const lockWait = time.Second

// lockable looks at the lock that Badger takes on the directory.
func (d *disk) lockable() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	defer f.Close()
	for until := time.Now().Add(lockWait); ; time.Sleep(lockWait / 50) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil
		}
		if time.Now().After(until) {
			return locked(d.dir)
		}
	}
}

func locked(dir string) error {
	return fmt.Errorf("%w in %s: use the running one through its API, or stop it first", ErrLocked, dir)
}

// openable asks for the room that Badger needs to write old logs into tables.
func (d *disk) openable(logs int) error {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return fmt.Errorf("%w: statfs %s: %w", ErrFailed, d.dir, err)
	}
	need := uint64(logs*memTableSize + 2<<20)
	if free := st.Bavail * uint64(st.Bsize); free < need {
		return fmt.Errorf("%w: %w: %d bytes are free in %s, %d are needed", ErrFailed, ErrDiskFull, free, d.dir, need)
	}
	return nil
}
