package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	v1 "berth/api/v1"
)

// openVolume is a volume that is open for one operation.
type openVolume struct {
	root   *os.Root
	m      *Manager
	id     string       // of the volume
	ctxErr func() error // returns the error of the operation's context
	quota  *quota
	done   func() // ends the read in the Manager's gate; nil after close

	space *Space // of the host; nil if the volume is on another file system than the store
}

// open opens a volume. It returns v1.ErrNotADirectory if a link or a file is in
// place of its directory, even if it was swapped in during the call.
func (m *Manager) open(ctx context.Context, id string) (*openVolume, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	done := m.gate.read(id) // before the directory is opened, which a restore replaces
	r, info, err := openRoot(m.Path(id))
	if err != nil {
		done()
		return nil, err
	}
	vol := &openVolume{root: r, m: m, id: id, quota: m.quota(id), ctxErr: ctx.Err, done: done}
	if m.space.Contains(info) {
		vol.space = m.space
	}
	return vol, nil
}

// openTries is how often a volume is opened again that was replaced meanwhile.
const openTries = 3

// openRoot opens the directory of a volume, and describes it. OpenRoot would follow a link in place
// of the directory, but what it opens is then another file than Lstat has described.
func openRoot(dir string) (r *os.Root, info fs.FileInfo, err error) {
	for range 1 + openTries {
		info, err = os.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, v1.ErrDirectoryMissing
		case err != nil:
			return nil, nil, err
		case !info.IsDir():
			return nil, nil, v1.ErrNotADirectory
		}
		if r, err = os.OpenRoot(dir); err != nil { // only an operator can swap it: tenants cannot write beside it
			return nil, nil, err
		}
		if found, err := r.Lstat("."); err == nil && os.SameFile(info, found) {
			return r, info, nil
		}
		r.Close()
	}
	return nil, nil, fmt.Errorf("%w: it was replaced", v1.ErrNotADirectory)
}

// close ends the operation. Closing it again does nothing.
func (vol *openVolume) close() {
	if vol.done != nil {
		vol.root.Close()
		vol.done()
		vol.done = nil
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
	if errors.Is(err, v1.ErrDiskFull) && f.m.projects.full(id) {
		return v1.ErrSizeLimit
	}
	return err
}
