package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/runtime/volume/walk"
)

// Limits on the directories of volumes that stay open between operations.
const (
	maxRoots  = 64
	rootTime  = time.Second            // after the last operation
	rootCheck = 100 * time.Millisecond // until their place is looked at again
)

// roots opens the directories of volumes. It can keep them open for a moment: a client that copies a
// tree makes thousands of operations on one volume, and opening it takes as long as one of them.
type roots struct {
	base string

	mu      sync.Mutex
	kept    map[string]*sharedRoot // by volume
	planned bool                   // a call of expire
	forgets uint64                 // how often a directory was replaced or removed
}

// sharedRoot is the directory of a volume, for operations that may be at the same time.
type sharedRoot struct {
	*os.Root
	dir     *walk.Dir // the same, for openFile; nil unless it was opened to be kept
	info    fs.FileInfo
	users   int
	kept    bool      // roots has it
	ended   time.Time // when its last user has
	checked time.Time // when it was in its place
}

func newRoots(base string) *roots { return &roots{base: base, kept: map[string]*sharedRoot{}} }

// openTries is how often a volume is opened again that was replaced meanwhile.
const openTries = 3

// errReplaced reports that the volume's directory was replaced while it was opened.
var errReplaced = fmt.Errorf("%w: it was replaced", v1.ErrNotADirectory)

// open opens the directory of a volume. The caller calls release at the end.
func (r *roots) open(id string, keep bool) (s *sharedRoot, err error) {
	for range 1 + openTries {
		if s, err = r.openOnce(id, keep); !errors.Is(err, errReplaced) {
			break
		}
	}
	return s, err
}

// openOnce opens the directory, or returns errReplaced. OpenRoot would follow a link in place of
// the directory, but what it opens is then another file than Lstat has described.
func (r *roots) openOnce(id string, keep bool) (*sharedRoot, error) {
	began := r.forgotten()
	if s := r.take(id, nil); s != nil {
		return s, nil
	}
	dir := filepath.Join(r.base, id)
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, v1.ErrDirectoryMissing
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, v1.ErrNotADirectory
	}
	if s := r.take(id, info); s != nil {
		return s, nil
	}
	root, err := os.OpenRoot(dir) // only an operator can swap it: tenants cannot write beside it
	if err != nil {
		return nil, err
	}
	s := &sharedRoot{Root: root}
	if s.info, err = root.Lstat("."); err != nil || !os.SameFile(info, s.info) {
		s.close()
		return nil, errReplaced
	}
	if keep {
		if s.dir, err = walk.OpenDir(root, "."); err != nil {
			s.close()
			return nil, err
		}
	}
	return r.add(id, s, keep, began), nil
}

// openFile is OpenFile, by one system call where the kernel has it.
func (s *sharedRoot) openFile(p string, flags int, perm fs.FileMode) (*os.File, error) {
	if s.dir != nil {
		f, err := walk.OpenBeneath(s.dir, p, flags, perm)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return s.OpenFile(p, flags, perm)
}

// stat is Stat, by three system calls where the kernel has openat2.
func (s *sharedRoot) stat(p string) (fs.FileInfo, error) {
	if s.dir != nil {
		if info, err := walk.StatBeneath(s.dir, p); err == nil {
			return info, nil
		}
	}
	return s.Stat(p)
}

func (s *sharedRoot) close() {
	if s.dir != nil {
		s.dir.Close()
	}
	s.Close()
}

// take returns the directory of a volume if it is open, and was in its place a moment ago or is
// the one that info describes; otherwise nil.
func (r *roots) take(id string, info fs.FileInfo) *sharedRoot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.kept[id]
	switch {
	case s == nil || info == nil && time.Since(s.checked) >= rootCheck:
		return nil
	case info != nil && !os.SameFile(info, s.info):
		r.drop(id)
		return nil
	case info != nil:
		s.checked = time.Now()
	}
	s.users++
	return s
}

// forgotten returns how often a directory was replaced or removed.
func (r *roots) forgotten() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forgets
}

// add records a directory that was opened. It is not kept if one was replaced since the opening
// began.
func (r *roots) add(id string, s *sharedRoot, keep bool, began uint64) *sharedRoot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.users, s.checked = 1, time.Now()
	if keep && began == r.forgets && len(r.kept) < maxRoots && r.kept[id] == nil {
		r.kept[id], s.kept = s, true
	}
	return s
}

// forget has the directory of a volume opened again, which was replaced or removed.
func (r *roots) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgets++
	r.drop(id)
}

// drop is forget for a caller that holds mu.
func (r *roots) drop(id string) {
	s := r.kept[id]
	if s == nil {
		return
	}
	delete(r.kept, id)
	if s.kept = false; s.users == 0 {
		s.close()
	}
}

// release ends a use of the directory.
func (r *roots) release(s *sharedRoot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.users--
	switch {
	case s.users > 0:
	case s.kept:
		s.ended = time.Now()
		r.plan()
	default:
		s.close()
	}
}

// plan has expire called. The caller holds mu.
func (r *roots) plan() {
	if !r.planned {
		r.planned = true
		time.AfterFunc(rootTime, r.expire)
	}
}

// expire closes the directories that nobody has used for rootTime.
func (r *roots) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.planned = false
	for id, s := range r.kept {
		switch {
		case s.users > 0:
		case time.Since(s.ended) >= rootTime:
			r.drop(id)
		default:
			r.plan()
		}
	}
}
