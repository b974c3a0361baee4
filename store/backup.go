package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"berth/store/kv"
)

// A backup of a store is backupMagic, the content, and the SHA-256 of both.
const backupMagic = "berth store 1\n"

// ErrNoBackup reports that a file is not a complete backup of a store.
var ErrNoBackup = errors.New("not a complete backup of a store")

// Backup writes one consistent state of the store to w, while the store is used.
func Backup(s *Store, w io.Writer) error {
	if s.closed.Load() {
		return ErrClosed
	}
	sum := sha256.New()
	both := io.MultiWriter(w, sum)
	if _, err := io.WriteString(both, backupMagic); err != nil {
		return err
	}
	if err := s.db.Backup(both); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// Restore replaces the store in dir by a backup, and returns where the store before is
// kept; empty: there was none. The store must not be open: then the error is ErrLocked.
// If the file is not a complete backup, nothing is changed and the error is ErrNoBackup.
// The restored store begins another incarnation.
func Restore(dir string, backup *os.File) (kept string, err error) {
	content, err := verifyBackup(backup)
	if err != nil {
		return "", err
	}
	switch unlock, err := kv.Lock(dir); {
	case err == nil:
		defer unlock()
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	next := dir + ".restoring"
	if err := errors.Join(os.RemoveAll(next), os.MkdirAll(next, 0o700)); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(next) }() // the next restore removes it otherwise
	if err := kv.Load(next, content); err != nil {
		return "", fmt.Errorf("%w: %w", ErrFailed, err)
	}
	s, err := Open(next, Options{})
	if err != nil {
		return "", err
	}
	if err := s.Close(); err != nil {
		return "", err
	}
	return replace(dir, next)
}

// replace puts next in the place of dir, and returns the name of what was there. At each moment
// dir is the one or the other: berth would begin an empty store where there is none.
func replace(dir, next string) (kept string, err error) {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return "", errors.Join(os.Rename(next, dir), syncParent(dir))
	}
	kept = dir + ".before-" + time.Now().UTC().Format("20060102T150405.000")
	if err := os.Rename(next, kept); err != nil {
		return "", err
	}
	err = unix.Renameat2(unix.AT_FDCWD, kept, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE)
	if err != nil {
		return "", errors.Join(fmt.Errorf("exchange %s and %s: %w", kept, dir, err), os.RemoveAll(kept))
	}
	return kept, syncParent(dir)
}

// verifyBackup compares the checksum of a backup, and returns its content.
func verifyBackup(f *os.File) (io.Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size() - sha256.Size
	if size < int64(len(backupMagic)) {
		return nil, ErrNoBackup
	}
	sum, head := sha256.New(), make([]byte, len(backupMagic))
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, err
	}
	sum.Write(head)
	if _, err := io.CopyN(sum, f, size-int64(len(head))); err != nil {
		return nil, err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(f, want); err != nil {
		return nil, err
	}
	if string(head) != backupMagic || !bytes.Equal(want, sum.Sum(nil)) {
		return nil, ErrNoBackup
	}
	_, err = f.Seek(int64(len(head)), io.SeekStart)
	return io.LimitReader(f, size-int64(len(head))), err
}

func syncParent(dir string) error {
	d, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
