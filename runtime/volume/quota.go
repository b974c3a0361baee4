package volume

import (
	"io/fs"
	"sync"
	"syscall"

	v1 "berth/api/v1"
)

// blockSize is the unit in which disk space is counted, in bytes.
const blockSize = 4096

// quota tracks the usage of a volume between scans: a scan sets it, and each
// operation adds what it created. So the next scan finds what a container writes,
// while writes of the API count at once.
type quota struct {
	mu       sync.Mutex
	known    bool  // used was set by a scan, of this process or an earlier one
	used     int64 // bytes on disk
	files    int64 // files and folders that the last scan found
	reserved int64 // bytes reserved by operations in flight
	limit    int64 // bytes; 0 means none
	swept    bool  // remains of a crash or an interrupted removal were removed

	changed func() // called without mu held
}

func (m *Manager) quota(id string) *quota {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.quotas[id]
	if q == nil {
		q = &quota{changed: func() { m.changed(id) }}
		m.quotas[id] = q
	}
	return q
}

// SetLimit sets the volume's limit in bytes; 0 means none. last is the usage that
// was stored before a restart; it counts until the first scan.
func (m *Manager) SetLimit(id string, limit int64, last v1.Usage) {
	q := m.quota(id)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = max(0, limit)
	if !q.known {
		q.known, q.used, q.files = true, q.used+last.Bytes, last.Files
	}
}

// Used returns the volume's usage as far as it is known without a scan.
func (m *Manager) Used(id string) v1.Usage {
	q := m.quota(id)
	q.mu.Lock()
	defer q.mu.Unlock()
	return v1.Usage{Bytes: max(0, q.used), Files: q.files}
}

// fits returns v1.ErrSizeLimit if n more bytes exceed the limit.
func (q *quota) fits(n int64) error { return q.reserve(n, 0) }

// reserve is fits, and reserves keep bytes if n bytes fit.
func (q *quota) reserve(n, keep int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limit > 0 && q.used+q.reserved+n > q.limit {
		return v1.ErrSizeLimit
	}
	q.reserved += keep
	return nil
}

// forget adds what an operation has made or, negative, removed.
func (q *quota) add(n int64) {
	q.mu.Lock()
	q.used += n
	q.mu.Unlock()
	q.changed()
}

// setUsage sets the usage that a scan measured.
func (q *quota) setUsage(u v1.Usage) {
	q.mu.Lock()
	q.known, q.used, q.files = true, u.Bytes, u.Files
	q.mu.Unlock()
}

// bound returns the limit in bytes; 0 means none.
func (q *quota) bound() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit
}

func (q *quota) isSwept() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.swept
}

func (q *quota) setSwept(swept bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.swept = swept
}

// reservation is the space of a volume that one operation has reserved.
type reservation struct {
	quota     *quota
	space     *space
	credit    int64 // bytes that the operation will free when it completes
	reserved  int64
	unwritten int64 // part of reserved that may not be on disk yet
}

// grow reserves n more bytes before they are written. It returns v1.ErrSizeLimit
// if the volume has no space for them, and v1.ErrDiskFull if the host has none.
// Bytes that were reserved before must have been written.
func (s *reservation) grow(n int64) error {
	if err := s.quota.reserve(n-s.credit, n); err != nil {
		return err
	}
	s.reserved += n
	written := s.unwritten
	s.unwritten = 0
	if err := s.space.reserve(n, written); err != nil {
		return err
	}
	s.unwritten = n
	return nil
}

// release returns the space. The caller adds what was created to the quota.
func (s *reservation) release() {
	s.space.release(s.unwritten)
	s.unwritten = 0
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	s.quota.reserved -= s.reserved
	s.reserved = 0
}

// onDisk returns the bytes on disk that removing a file would free. One of several
// hard links frees nothing. Anything else counts at least one block because it
// takes an inode, so that nobody can create more files than blocks.
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

// inodeBytes returns the bytes on disk of an inode, whatever its number of links.
func inodeBytes(st *syscall.Stat_t) int64 { return max(st.Blocks*512, blockSize) }

// roundUp rounds n bytes up to whole blocks.
func roundUp(n int64) int64 { return (n + blockSize - 1) / blockSize * blockSize }

// newReservation returns an empty reservation in the volume's quota.
func (t *tree) newReservation() *reservation { return &reservation{quota: t.quota, space: t.space} }
