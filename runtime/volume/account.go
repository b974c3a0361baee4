package volume

import (
	"io/fs"
	"sync"
	"syscall"

	v1 "berth/api/v1"
)

// blockSize is what space on disk is counted in.
const blockSize = 4096

// quota keeps what a volume uses, without walking it: a scan sets it now and
// then, and each operation adds what it made. So what a tenant writes is seen
// at the next scan, and what the API writes at once.
type quota struct {
	mu    sync.Mutex
	known bool  // a scan, or the last one before a restart, has set used
	used  int64 // bytes on disk
	files int64 // files and folders, as last measured
	held  int64 // bytes of operations under way
	limit int64 // 0 is none
	swept bool  // what a crash, or a removal that was cut off, left was removed

	changed func() // is called without mu held
}

func (m *Manager) quota(id string) *quota {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.usages[id]
	if a == nil {
		a = &quota{changed: func() { m.changed(id) }}
		m.usages[id] = a
	}
	return a
}

// SetLimit bounds the volume to limit bytes, 0 for no bound. Size is what it
// used when it was last measured; it counts until the first scan.
func (m *Manager) SetLimit(id string, limit int64, last v1.Usage) {
	a := m.quota(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = max(0, limit)
	if !a.known {
		a.known, a.used, a.files = true, a.used+last.Bytes, last.Files
	}
}

// Used is what the volume uses, as far as is known without a scan.
func (m *Manager) Used(id string) v1.Usage {
	a := m.quota(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	return v1.Usage{Bytes: max(0, a.used), Files: a.files}
}

// fits refuses n more bytes that are over the limit.
func (a *quota) fits(n int64) error { return a.reserve(n, 0) }

// reserve is fits; what fits and is to be kept until it is settled is kept.
func (a *quota) reserve(n, keep int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limit > 0 && a.used+a.held+n > a.limit {
		return v1.ErrSizeLimit
	}
	a.held += keep
	return nil
}

// release adds what an operation has made or, negative, removed.
func (a *quota) release(n int64) {
	a.mu.Lock()
	a.used += n
	a.mu.Unlock()
	a.changed()
}

// measured sets what a scan has found.
func (a *quota) measured(u v1.Usage) {
	a.mu.Lock()
	a.known, a.used, a.files = true, u.Bytes, u.Files
	a.mu.Unlock()
}

// bound is the limit in bytes; 0 is none.
func (a *quota) bound() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limit
}

func (a *quota) isSwept() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.swept
}

func (a *quota) setSwept(swept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.swept = swept
}

// reservation is the part of a volume's space that one operation makes use of.
type reservation struct {
	a      *quota
	space  *space
	credit int64 // bytes that the operation will free in the end
	n      int64
	flying int64 // of these those that may not be written yet
}

// grow reserves n more bytes before they are written. It is v1.ErrSizeLimit where
// the volume has no room for them, and v1.ErrDiskFull where the host has none.
// What was reserved before has to be written by now.
func (s *reservation) grow(n int64) error {
	if err := s.a.reserve(n-s.credit, n); err != nil {
		return err
	}
	s.n += n
	written := s.flying
	s.flying = 0
	if err := s.space.take(n, written); err != nil {
		return err
	}
	s.flying = n
	return nil
}

// end gives the space back. What stays of it is settled apart.
func (s *reservation) end() {
	s.space.give(s.flying)
	s.flying = 0
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	s.a.held -= s.n
	s.n = 0
}

// onDisk is what a file occupies, in bytes. One of several hard links occupies
// nothing by itself. Anything else occupies a block at least, as it takes an
// inode: nobody can make more of them than blocks.
func onDisk(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return max(info.Size(), blockSize)
	}
	if st.Nlink > 1 && !info.IsDir() {
		return 0
	}
	return inodeBytes(st)
}

// inodeBytes is what an inode occupies, in bytes, whatever its number of links.
func inodeBytes(st *syscall.Stat_t) int64 { return max(st.Blocks*512, blockSize) }

// roundUp is what n bytes of a file will occupy, beside the block of an empty file.
func roundUp(n int64) int64 { return (n + blockSize - 1) / blockSize * blockSize }

// reservation begins an operation that makes use of the volume's space.
func (t *tree) share() *reservation { return &reservation{a: t.used, space: t.space} }
