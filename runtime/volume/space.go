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

// inodesReserve is how many inodes file operations leave to the store.
const inodesReserve = 1024

// space is the free space of the file system that the volumes are on. Operations
// reserve each piece before they write it. A nil space has room for everything.
type space struct {
	dir string
	dev uint64

	mu     sync.Mutex
	flying int64 // bytes that were reserved and may not be written yet
}

// newSpace returns the space of base if the store in the directory beside is on
// the same file system; otherwise nothing has to be reserved for it: nil.
func newSpace(base, beside string) (*space, error) {
	if beside == "" {
		return nil, nil
	}
	var a, b unix.Stat_t
	if err := unix.Stat(base, &a); err != nil {
		return nil, fmt.Errorf("volumes: %w", wrap("stat", base, err))
	}
	if err := unix.Stat(beside, &b); err != nil {
		return nil, fmt.Errorf("store: %w", wrap("stat", beside, err))
	}
	if a.Dev != b.Dev {
		return nil, nil
	}
	return &space{dir: base, dev: uint64(a.Dev)}, nil
}

// has reports whether a folder is on this file system.
func (s *space) has(folder fs.FileInfo) bool {
	st, ok := folder.Sys().(*syscall.Stat_t)
	return s != nil && ok && uint64(st.Dev) == s.dev
}

// take reserves n bytes, and gives done bytes back that have been written. It is
// v1.ErrDiskFull when no more than the store's reserve would be left.
func (s *space) take(n, done int64) error {
	if s == nil {
		return nil
	}
	var st unix.Statfs_t
	err := unix.Statfs(s.dir, &st)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying -= done
	if err != nil {
		return os.NewSyscallError("statfs", err)
	}
	block := int64(st.Bsize)
	if int64(st.Bavail)*block-s.flying-n < v1.DiskReserve(int64(st.Blocks)*block) || st.Files > 0 && st.Ffree < inodesReserve {
		return v1.ErrDiskFull
	}
	s.flying += n
	return nil
}

// give gives back what was reserved.
func (s *space) give(n int64) {
	if s == nil || n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying -= n
}
