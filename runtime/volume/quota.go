package volume

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// maxCounted is the most bytes that are counted, so that no sum overflows: a client may
// write at any offset.
const maxCounted = 1 << 62

// blockBytes is the unit in which disk space is counted, in bytes.
const blockBytes = 4096

// quota tracks the usage of a volume between scans: a scan sets it, and each
// operation adds what it created. So the next scan finds what a container writes,
// while writes of the API count at once. It is safe for concurrent use.
type quota struct {
	mu       sync.Mutex
	known    bool  // used was set by a scan, of this process or an earlier one
	used     int64 // bytes on disk
	files    int64 // files and folders that the last scan found
	reserved int64 // bytes reserved by operations in flight
	limit    int64 // bytes; 0 means none

	unmeasured string // why the last scan measured a part only; empty if it measured all

	changed bool // since takeChanged was called last
}

// SetLimit sets the limit in bytes; 0 means none. last is the usage that was stored
// before a restart; it counts until the first scan.
func (q *quota) SetLimit(limit int64, last v1.Usage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = max(0, limit)
	if !q.known {
		q.known, q.used, q.files = true, q.used+last.Bytes, last.Files
	}
}

// Limit returns the limit in bytes; 0 means none.
func (q *quota) Limit() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit
}

// Used returns the usage as far as it is known without a scan.
func (q *quota) Used() v1.Usage {
	q.mu.Lock()
	defer q.mu.Unlock()
	return v1.Usage{Bytes: max(0, q.used), Files: q.files}
}

// SetUsed sets the usage that a scan measured. unmeasured is a reason of v1.UsageMeasured
// if it did not measure the whole tree.
func (q *quota) SetUsed(u v1.Usage, unmeasured string) {
	q.mu.Lock()
	q.known, q.used, q.files, q.unmeasured = true, u.Bytes, u.Files, unmeasured
	q.mu.Unlock()
}

// Unmeasured returns why the last scan did not measure the whole tree; empty if it did.
func (q *quota) Unmeasured() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unmeasured
}

// Add adds n bytes that an operation created, or removes them if n is negative.
func (q *quota) Add(n int64) { q.commit(n, 0) }

// commit is Add, and returns reserved bytes in the same step.
func (q *quota) commit(n, reserved int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used += n
	q.reserved -= reserved
	q.changed = true
}

// takeChanged reports whether the usage has changed since the last call.
func (q *quota) takeChanged() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	changed := q.changed
	q.changed = false
	return changed
}

// Fits returns v1.ErrSizeLimit if n more bytes exceed the limit.
func (q *quota) Fits(n int64) error { return q.reserve(n, 0) }

// reserve is Fits, and reserves keep bytes if n bytes fit.
func (q *quota) reserve(n, keep int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := int64(maxCounted)
	if q.limit > 0 {
		limit = min(q.limit, maxCounted)
	}
	if n > limit-q.used-q.reserved {
		return v1.ErrSizeLimit
	}
	q.reserved += keep
	return nil
}

// release returns n reserved bytes.
func (q *quota) release(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved -= n
}

// SetLimit sets the volume's limit in bytes; 0 means none. last is the usage that
// was stored before a restart; it counts until the first scan.
func (m *Manager) SetLimit(id string, limit int64, last v1.Usage) {
	m.of(id).quota.SetLimit(limit, last)
}

// Limit returns the volume's limit in bytes; 0 means none.
func (m *Manager) Limit(id string) int64 { return m.of(id).quota.Limit() }

// Used returns the volume's usage as far as it is known without a scan.
func (m *Manager) Used(id string) v1.Usage { return m.of(id).quota.Used() }

// Unmeasured returns why the last scan of a volume did not measure the whole tree, a reason
// of v1.UsageMeasured; empty if it did.
func (m *Manager) Unmeasured(id string) string { return m.of(id).quota.Unmeasured() }

// gatherTime is how long Changed collects changes before it reports them.
const gatherTime = time.Second

// Changed calls notify for each volume whose usage changed, within about a second
// of the change, until ctx ends. Only one goroutine may call it at a time.
func (m *Manager) Changed(ctx context.Context, notify func(id string)) error {
	tick := time.NewTicker(gatherTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, id := range m.takeChanged() {
			notify(id)
		}
	}
}

// takeChanged returns the volumes whose usage changed since the last call.
func (m *Manager) takeChanged() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, s := range m.volumes {
		if s.quota.takeChanged() {
			ids = append(ids, id)
		}
	}
	return ids
}

// onDisk returns the bytes on disk that removing a file would free. One of several
// hard links frees nothing. Anything else counts at least one block because it
// takes an inode, so that nobody can create more files than blocks.
func onDisk(info fs.FileInfo) int64 {
	if fsys.Stat(info).Nlink > 1 && !info.IsDir() {
		return 0
	}
	return inodeBytes(info)
}

// inodeBytes returns the bytes on disk of an inode, whatever its number of links.
func inodeBytes(info fs.FileInfo) int64 { return max(allocated(info), blockBytes) }

// allocated returns how many bytes the content of an entry has on disk. On a file system that
// compresses or preallocates, the difference to its size is not the size of its holes.
func allocated(info fs.FileInfo) int64 { return fsys.Stat(info).Blocks * 512 }

// roundUp rounds n bytes up to whole blocks.
func roundUp(n int64) int64 { return (n + blockBytes - 1) / blockBytes * blockBytes }

// reservation is the space that one operation has reserved. It is not safe for
// concurrent use.
type reservation struct {
	quota     *quota
	space     *Space // nil: unlimited
	credit    int64  // bytes that the operation will free when it completes
	reserved  int64
	unwritten int64 // part of reserved that may not be on disk yet
}

// newReservation returns an empty reservation in the volume's quota and the host's
// free space. credit is how many bytes the operation frees when it completes.
func (vol *Volume) newReservation(credit int64) *reservation {
	return &reservation{quota: vol.quota, space: vol.space, credit: credit}
}

// Bytes returns how many bytes are reserved.
func (r *reservation) Bytes() int64 { return r.reserved }

// Grow reserves n more bytes before they are written. It returns v1.ErrSizeLimit
// if the volume has no space for them, and v1.ErrDiskFull if the host has none.
// Bytes that were reserved before must have been written.
func (r *reservation) Grow(n int64) error {
	if err := r.quota.reserve(n-r.credit, n); err != nil {
		return err
	}
	r.reserved += n
	written := r.unwritten
	r.unwritten = 0
	if err := r.space.reserve(n, written); err != nil {
		return err
	}
	r.unwritten = n
	return nil
}

// Commit ends the reservation, and adds n bytes that were created to the usage of the volume, or removes
// them if n is negative. It is one step: at no time do bytes count twice.
func (r *reservation) Commit(n int64) {
	r.quota.commit(n, r.reserved)
	r.reserved = 0
	r.Release()
}

// Release ends the reservation without a Commit. After one it does nothing.
func (r *reservation) Release() {
	r.space.release(r.unwritten)
	r.quota.release(r.reserved)
	r.unwritten, r.reserved = 0, 0
}

// withBlock calls create, which creates an entry, with a block reserved for its inode.
func (vol *Volume) withBlock(create func() error) error {
	r := vol.newReservation(0)
	defer r.Release()
	if err := r.Grow(blockBytes); err != nil {
		return err
	}
	if err := create(); err != nil {
		return err
	}
	r.Commit(blockBytes)
	return nil
}

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
	return s != nil && uint64(fsys.Stat(folder).Dev) == s.dev
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
