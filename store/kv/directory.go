package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// prepareDir creates the directory, or returns why Badger must not open it.
func (d *disk) prepareDir() error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := d.waitForLock(); err != nil {
		return err
	}
	files := map[string]int{} // by name and by extension
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	for _, e := range entries {
		files[filepath.Ext(e.Name())]++
		files[e.Name()]++
		d.removeEmptyLog(e)
	}
	if files[".sst"] > 0 && files["MANIFEST"] == 0 {
		// Badger would take the tables for leftovers, and remove them.
		return fmt.Errorf("%w: %s has %d tables but no MANIFEST; restore a backup, or move the directory away to start with an empty store", ErrDamaged, d.dir, files[".sst"])
	}
	d.release()
	return d.checkFreeToOpen(files[".mem"])
}

// removeEmptyLog removes a log that a kill left without even its header. Badger cannot open it.
func (d *disk) removeEmptyLog(e os.DirEntry) {
	st, err := e.Info()
	ext := filepath.Ext(e.Name())
	if err == nil && st.Size() == 0 && (ext == ".mem" || ext == ".vlog") {
		_ = os.Remove(filepath.Join(d.dir, e.Name()))
	}
}

// lockWait is how long Open waits for a lock. A berth that is killed while it
// starts a tool leaves a process that holds the lock until the tool runs.
const lockWait = time.Second

// waitForLock waits until nobody holds the lock that Badger takes on the directory.
func (d *disk) waitForLock() error {
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

// CheckLock returns ErrLocked if a process has the database in dir open, or why that is unknown.
func CheckLock(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	defer f.Close() // which unlocks it
	if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return locked(dir)
	}
	return nil
}

func locked(dir string) error {
	return fmt.Errorf("%w in %s: use the running one through its API, or stop it first", ErrLocked, dir)
}

// checkFreeToOpen returns why Badger cannot write the old logs into tables, as it
// does when it is opened, or nil.
func (d *disk) checkFreeToOpen(logs int) error {
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
