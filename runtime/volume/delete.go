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
	in, err := vol.m.openTemps(vol.id)
	if err != nil {
		return err
	}
	defer in.close()
	gone := randomName(removedPrefix)
	if err := dir.dir.RenameNew(path.Base(p), in.dir, gone); err != nil {
		return err
	}
	freed, err := walk.Remove(ctx, in.dir, gone, quota.OnDisk)
	vol.quota.Add(-freed)
	return errors.Join(err, dir.sync())
}
