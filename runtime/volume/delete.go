package volume

import (
	"context"
	"errors"
	"path"

	"berth/runtime/volume/quota"
	"berth/runtime/volume/walk"
)

// Delete removes p and everything in it. p disappears at once; if ctx ends before
// everything is removed, the next scan removes the rest.
func (f Files) Delete(ctx context.Context, id, p string) error {
	p, err := cleanEntry(p)
	if err != nil {
		return err
	}
	return f.withVolume(ctx, id, p, func(vol *openVolume) error { return vol.delete(ctx, p) })
}

func (vol *openVolume) delete(ctx context.Context, p string) error {
	dir, err := newFolder(vol.root, path.Dir(p))
	if err != nil {
		return err
	}
	defer dir.close()
	top, err := vol.top()
	if err != nil {
		return err
	}
	defer top.close()
	x := vol.newTemp()
	defer x.forget()
	if err := dir.dir.RenameNew(path.Base(p), top.dir, x.name); err != nil {
		return err
	}
	freed, err := walk.Remove(ctx, top.dir, x.name, quota.OnDisk)
	if err != nil {
		vol.m.sweeps.request(vol.id)
	}
	vol.quota.Add(-freed)
	return errors.Join(err, dir.sync())
}
