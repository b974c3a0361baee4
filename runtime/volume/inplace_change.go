package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	v1 "berth/api/v1"
)

// Mkdir creates the folder p with mode 0755. Its parent must exist.
func (n InPlace) Mkdir(ctx context.Context, id, p string) error {
	return n.change(ctx, id, p, func(vol *openVolume, dir *folder, base string) error {
		if err := errors.Join(vol.quota.Fits(blockBytes), vol.space.Check()); err != nil {
			return err
		}
		if err := dir.Mkdir(base, 0o700); err != nil {
			return err
		}
		vol.quota.Add(blockBytes)
		made, err := openFolder(dir.Root, base)
		if err != nil {
			return err
		}
		defer made.close()
		o, err := dir.owner()
		if err != nil {
			return err
		}
		return o.finish(made.file, 0o755)
	})
}

// change opens the folder of p, and calls do with it and the name in it.
func (n InPlace) change(ctx context.Context, id, p string, do func(vol *openVolume, dir *folder, base string) error) error {
	p, err := cleanEntry(p)
	if err != nil {
		return err
	}
	return n.files.withVolume(ctx, id, p, func(vol *openVolume) error {
		dir, err := openFolder(vol.root, path.Dir(p))
		if err != nil {
			return err
		}
		defer dir.close()
		return do(vol, dir, path.Base(p))
	})
}

// Remove removes the entry at p, which must not be a folder.
func (n InPlace) Remove(ctx context.Context, id, p string) error {
	return n.change(ctx, id, p, func(vol *openVolume, dir *folder, base string) error {
		info, err := dir.Lstat(base)
		if err == nil && info.IsDir() {
			err = notAFile(p)
		}
		if err == nil {
			err = dir.Remove(base)
		}
		if err == nil {
			countRemoved(vol, info)
		}
		return err
	})
}

// RemoveFolder removes the folder p, which must be empty.
func (n InPlace) RemoveFolder(ctx context.Context, id, p string) error {
	return n.change(ctx, id, p, func(vol *openVolume, dir *folder, base string) error {
		info, err := dir.Lstat(base)
		if err == nil && !info.IsDir() {
			return v1.Errorf(v1.InvalidRequest, "Not a folder: %s", v1.EscapePath(p))
		}
		if err == nil {
			err = dir.Remove(base)
		}
		if is(err, syscall.ENOTEMPTY, syscall.EEXIST) {
			return v1.Errorf(v1.FileExists, "Folder is not empty: %s", v1.EscapePath(p))
		}
		if err == nil {
			vol.quota.Add(-blockBytes)
		}
		return err
	})
}

// countRemoved takes a removed entry from the usage. What an open handle keeps is counted until a
// scan finds that it is closed.
func countRemoved(vol *openVolume, removed fs.FileInfo) {
	for _, h := range vol.m.handles(vol.id) {
		if info, err := h.file.Stat(); err == nil && os.SameFile(info, removed) {
			return
		}
	}
	vol.quota.Add(-onDisk(removed))
}

// Rename moves src to dst. If replace is true, it replaces what is at dst as rename(2)
// does; otherwise dst must not exist.
func (n InPlace) Rename(ctx context.Context, id, src, dst string, replace bool) error {
	src, err := cleanEntry(src)
	if err != nil {
		return err
	}
	return n.change(ctx, id, dst, func(vol *openVolume, to *folder, base string) error {
		from, err := openFolder(vol.root, path.Dir(src))
		if err != nil {
			return refuse(src, err)
		}
		defer from.close()
		if _, err := from.Lstat(path.Base(src)); err != nil {
			return refuse(src, err)
		}
		if !replace {
			err = from.renameNew(path.Base(src), to, base)
		} else {
			err = renameOver(vol, from, path.Base(src), to, base)
		}
		switch {
		case errors.Is(err, syscall.EINVAL):
			return intoItself("move")
		case is(err, syscall.ENOTEMPTY, syscall.ENOTDIR, syscall.EISDIR):
			return exists(dst)
		}
		return err
	})
}

func renameOver(vol *openVolume, from *folder, old string, to *folder, base string) error {
	replaced, missing := to.Lstat(base)
	moved, err := from.Lstat(old)
	if err != nil {
		return err
	}
	err = from.rename(old, to, base, 0)
	if err == nil && missing == nil && inodeOf(replaced) != inodeOf(moved) {
		countRemoved(vol, replaced)
	}
	return err
}

// Symlink creates a link at p. Its target, from the folder of p, must stay in the
// volume.
func (n InPlace) Symlink(ctx context.Context, id, target, p string) error {
	if len(target) > v1.MaxPath || !inside(p, target) {
		return v1.ErrInvalidPath
	}
	if _, err := clean(path.Join(path.Dir(p), target)); err != nil {
		return err
	}
	return n.change(ctx, id, p, func(vol *openVolume, dir *folder, base string) error {
		if err := errors.Join(vol.quota.Fits(blockBytes), vol.space.Check()); err != nil {
			return err
		}
		if err := dir.Symlink(target, base); err != nil {
			return err
		}
		vol.quota.Add(blockBytes)
		o, err := dir.owner()
		if err != nil {
			return err
		}
		return o.finishLink(dir, base)
	})
}
