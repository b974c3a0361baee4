package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	v1 "berth/api/v1"
	"berth/runtime/volume/quota"
)

// openVolume is a volume that is open for one operation.
type openVolume struct {
	root   *os.Root
	inode  inode // of root
	m      *Manager
	id     string       // of the volume
	ctxErr func() error // returns the error of the operation's context
	quota  *quota.Quota
	done   func() // ends the read in the Manager's gate; may be nil

	space *quota.Space // of the host; nil if the volume is on another file system than the store
}

// open opens a volume. It returns v1.ErrNotADirectory if a link or a file is in
// place of its directory, even if it was swapped in during the call.
func (m *Manager) open(ctx context.Context, id string) (*openVolume, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	done := m.gate.read(id) // before the directory is opened, which a restore replaces
	vol, err := m.openOnce(id)
	for range openTries {
		if !errors.Is(err, errReplaced) {
			break
		}
		vol, err = m.openOnce(id)
	}
	if err != nil {
		done()
		return nil, err
	}
	vol.ctxErr, vol.done = ctx.Err, done
	return vol, nil
}

// openTries is how often a volume is opened again that was replaced meanwhile.
const openTries = 3

// errReplaced reports that the volume's directory was replaced while it was opened.
var errReplaced = fmt.Errorf("%w: it was replaced", v1.ErrNotADirectory)

// openOnce opens the volume, or returns errReplaced. OpenRoot would follow a link in place of
// the directory, but what it opens is then another file than Lstat has described.
func (m *Manager) openOnce(id string) (*openVolume, error) {
	defer m.images.Hold()()
	dir := m.Path(id)
	before, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, v1.ErrDirectoryMissing
	case err != nil:
		return nil, err
	case !before.IsDir():
		return nil, v1.ErrNotADirectory
	case m.images.Exists(id) && !m.images.Mounted(id):
		return nil, v1.ErrDirectoryMissing
	}
	r, err := os.OpenRoot(dir) // only an operator can swap it: tenants cannot write beside it
	if err != nil {
		return nil, err
	}
	after, err := r.Lstat(root)
	if err != nil || !os.SameFile(before, after) {
		r.Close()
		return nil, errReplaced
	}
	vol := &openVolume{root: r, inode: inodeOf(after), m: m, id: id, quota: m.quota(id)}
	if m.images.Exists(id) || m.space.Contains(after) {
		vol.space = m.space
	}
	return vol, nil
}

func (vol *openVolume) close() {
	vol.root.Close()
	if vol.done != nil {
		vol.done()
	}
}

// withVolume opens a volume, calls do with it, which may change its files, and converts
// the error to one that clients receive about p. It returns v1.ErrVolumeRestoring
// during a restore.
func (f Files) withVolume(ctx context.Context, id, p string, do func(*openVolume) error) error {
	done, err := f.m.gate.change(id)
	if err != nil {
		return err
	}
	defer done()
	return f.readVolume(ctx, id, p, func(vol *openVolume) error {
		vol.ctxErr = func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return f.m.gate.check(id)
		}
		return do(vol)
	})
}

// readVolume is withVolume for operations that change nothing. A restore does not
// refuse them.
func (f Files) readVolume(ctx context.Context, id, p string, do func(*openVolume) error) error {
	vol, err := f.m.open(ctx, id)
	if err != nil {
		return err
	}
	defer vol.close()
	err = refuse(p, do(vol))
	if errors.Is(err, v1.ErrDiskFull) && f.m.images.Exists(id) {
		return v1.ErrSizeLimit // the volume's own file system is full, not the host's
	}
	return err
}
