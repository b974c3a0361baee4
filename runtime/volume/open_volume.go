package volume

import (
	"context"
	"errors"
	"os"

	v1 "berth/api/v1"
	"berth/runtime/volume/quota"
)

// openVolume is a volume that is open for one operation.
type openVolume struct {
	root   *os.Root
	shared *sharedRoot // that root belongs to
	m      *Manager
	id     string       // of the volume
	ctxErr func() error // returns the error of the operation's context
	quota  *quota.Quota
	done   func() // ends the read in the Manager's gate; nil after close

	space *quota.Space // of the host; nil if the volume is on another file system than the store
}

// open opens a volume. It returns v1.ErrNotADirectory if a link or a file is in
// place of its directory, even if it was swapped in during the call. If keep is true, the
// directory stays open for the next operation.
func (m *Manager) open(ctx context.Context, id string, keep bool) (*openVolume, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	done := m.gate.read(id) // before the directory is opened, which a restore replaces
	shared, err := m.roots.open(id, keep)
	if err != nil {
		done()
		return nil, err
	}
	vol := &openVolume{root: shared.Root, shared: shared, m: m, id: id, quota: m.quota(id), ctxErr: ctx.Err, done: done}
	if m.space.Contains(shared.info) {
		vol.space = m.space
	}
	return vol, nil
}

// abandon ends what is open of a volume whose directory was replaced or removed.
func (m *Manager) abandon(id string) {
	m.opened.abandon(id)
	m.roots.forget(id)
}

// close ends the operation. Closing it again does nothing.
func (vol *openVolume) close() {
	if vol.done != nil {
		vol.m.roots.release(vol.shared)
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
	vol, err := f.m.open(ctx, id, f.keepsRoots)
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
