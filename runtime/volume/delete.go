package volume

import (
	"context"
	"errors"
	"path"
)

// Delete removes p and everything in it. p disappears at once; if ctx ends before
// everything is removed, the next scan removes the rest.
func (f Files) Delete(ctx context.Context, id, p string) error {
	p, err := parseEntry(p)
	if err != nil {
		return err
	}
	return f.withVolume(ctx, id, p, func(vol *openVolume) error { return vol.delete(ctx, p) })
}

func (vol *openVolume) delete(ctx context.Context, p string) error {
	dir, err := openFolder(vol.root, path.Dir(p))
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
	if err := dir.renameNew(path.Base(p), in, gone); err != nil {
		return err
	}
	freed, err := removeTree(ctx, in, gone)
	vol.quota.Add(-freed)
	return errors.Join(err, dir.sync())
}
