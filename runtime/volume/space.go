package volume

import (
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// inodesReserve is how many free inodes file operations keep for the store.
const inodesReserve = 1024

// Space is the free space of the volumes' file system. Operations reserve each
// piece before they write it. A nil Space is unlimited.
type Space struct {
	dir string
	dev uint64

	mu        sync.Mutex
	unwritten int64 // reserved bytes that may not be on disk yet
}

// OpenSpace returns the space of base if the store's directory is on the same file
// system. Otherwise it returns nil, because the store needs no reserve.
func OpenSpace(base, storeDir string) (*Space, error) {
	if storeDir == "" {
		return nil, nil
	}
	var a, b unix.Stat_t
	if err := unix.Stat(base, &a); err != nil {
		return nil, fmt.Errorf("volumes: %w", &os.PathError{Op: "stat", Path: base, Err: err})
	}
	if err := unix.Stat(storeDir, &b); err != nil {
		return nil, fmt.Errorf("store: %w", &os.PathError{Op: "stat", Path: storeDir, Err: err})
	}
	if a.Dev != b.Dev {
		return nil, nil
	}
	return &Space{dir: base, dev: uint64(a.Dev)}, nil
}

// Contains reports whether a folder is on this file system.
func (s *Space) Contains(folder fs.FileInfo) bool {
	st, ok := folder.Sys().(*syscall.Stat_t)
	return s != nil && ok && uint64(st.Dev) == s.dev
}

// Check returns v1.ErrDiskFull if less than the store's reserve is left.
func (s *Space) Check() error { return s.reserve(0, 0) }

// reserve reserves n bytes, and releases written bytes that are on disk now. It
// returns v1.ErrDiskFull if less than the store's reserve would be left.
func (s *Space) reserve(n, written int64) error {
	if s == nil {
		return nil
	}
	var st unix.Statfs_t
	err := unix.Statfs(s.dir, &st)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwritten -= written
	if err != nil {
		return os.NewSyscallError("statfs", err)
	}
	block := int64(st.Bsize)
	free := int64(st.Bavail)*block - s.unwritten - v1.DiskReserve(int64(st.Blocks)*block)
	if n > free || st.Files > 0 && st.Ffree < inodesReserve {
		return v1.ErrDiskFull
	}
	s.unwritten += n
	return nil
}

// release releases n reserved bytes.
func (s *Space) release(n int64) {
	if s == nil || n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwritten -= n
}
