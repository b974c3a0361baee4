package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// The methods of this file and of inplace_file.go operate on single entries as POSIX does: they change
// files where they are, make no parents, and remove no trees. Paths obey v1.CheckPath. What they have
// changed is not flushed to the disk.

// inspect opens a volume to read, and returns what do returns for the path p.
func inspect[T any](ctx context.Context, m *Manager, id, p string, do func(vol *Volume, p string) (T, error)) (found T, err error) {
	if p, err = clean(p); err != nil {
		return found, err
	}
	err = m.read(ctx, id, p, func(vol *Volume) (err error) {
		found, err = do(vol, p)
		return err
	})
	return found, err
}

// Stat describes the entry that p leads to, through links that stay in the volume.
func (m *Manager) Stat(ctx context.Context, id, p string) (fs.FileInfo, error) {
	return inspect(ctx, m, id, p, func(vol *Volume, p string) (fs.FileInfo, error) { return vol.root.Stat(p) })
}

// Lstat describes the entry at p, which may be a link.
func (m *Manager) Lstat(ctx context.Context, id, p string) (fs.FileInfo, error) {
	return inspect(ctx, m, id, p, func(vol *Volume, p string) (fs.FileInfo, error) { return vol.root.Lstat(p) })
}

// Readlink returns the target of the link at p, which may be outside the volume.
func (m *Manager) Readlink(ctx context.Context, id, p string) (string, error) {
	return inspect(ctx, m, id, p, func(vol *Volume, p string) (string, error) {
		if p == root {
			return "", v1.ErrInvalidPath
		}
		dir, err := vol.root.OpenFolder(path.Dir(p))
		if err != nil {
			return "", err
		}
		defer dir.Close()
		if err := vol.allowFound(dir, path.Base(p)); err != nil {
			return "", err
		}
		target, err := dir.Readlink(path.Base(p))
		if errors.Is(err, syscall.EINVAL) {
			return "", v1.Errorf(v1.InvalidRequest, "Not a link: %s", v1.EscapePath(p))
		}
		return target, err
	})
}

// openedFolder is a v1.FolderHandle.
type openedFolder struct {
	*fsys.Folder
	names []string // that were read already
}

// OpenFolder opens the folder p to list it.
func (m *Manager) OpenFolder(ctx context.Context, id, p string) (v1.FolderHandle, error) {
	return inspect(ctx, m, id, p, func(vol *Volume, p string) (v1.FolderHandle, error) {
		f, err := vol.root.OpenFolder(p)
		if err != nil {
			return nil, err
		}
		return &openedFolder{Folder: f}, nil
	})
}

// Next skips entries that were removed since their name was read.
func (f *openedFolder) Next() (fs.FileInfo, error) {
	for {
		if len(f.names) == 0 {
			var err error
			f.names, err = f.File.Readdirnames(fsys.NamesAtOnce)
			switch {
			case errors.Is(err, fs.ErrNotExist): // the folder itself was removed
				return nil, io.EOF
			case err != nil:
				return nil, err
			}
		}
		name := f.names[0]
		f.names = f.names[1:]
		info, err := f.Lstat(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return info, err
		}
	}
}

// Space returns the space of a volume.
func (m *Manager) Space(ctx context.Context, id string) (v1.VolumeSpace, error) {
	return inspect(ctx, m, id, root, func(vol *Volume, _ string) (v1.VolumeSpace, error) { return spaceLeft(vol) })
}

func spaceLeft(vol *Volume) (v1.VolumeSpace, error) {
	st, err := vol.statfs()
	if err != nil {
		return v1.VolumeSpace{}, err
	}
	used := vol.quota.Used()
	space := v1.VolumeSpace{Total: int64(st.Blocks) * st.Bsize, Free: int64(st.Bavail) * st.Bsize, Files: used.Files}
	if vol.space != nil {
		space.Free -= v1.DiskReserve(space.Total)
	}
	if limit := vol.quota.Limit(); limit > 0 {
		space.Total, space.Free = limit, min(space.Free, limit-used.Bytes)
	}
	space.Free = max(0, space.Free)
	return space, nil
}

// MakeFolder creates the folder p with mode 0755. Its parent must exist.
func (m *Manager) MakeFolder(ctx context.Context, id, p string) error {
	return m.changeEntry(ctx, id, p, func(vol *Volume, dir *fsys.Folder, base string) error {
		made, err := vol.mkdir(dir, base)
		if err == nil {
			made.Close()
		}
		return err
	})
}

// changeEntry is changeIn for a path of any bytes.
func (m *Manager) changeEntry(ctx context.Context, id, p string, do func(vol *Volume, dir *fsys.Folder, base string) error) error {
	p, err := cleanEntry(p)
	if err != nil {
		return err
	}
	return m.changeIn(ctx, id, p, do)
}

// RemoveFile removes the entry at p, which must not be a folder.
func (m *Manager) RemoveFile(ctx context.Context, id, p string) error {
	return m.removeEntry(ctx, id, p, false)
}

// RemoveFolder removes the folder p, which must be empty.
func (m *Manager) RemoveFolder(ctx context.Context, id, p string) error {
	return m.removeEntry(ctx, id, p, true)
}

func (m *Manager) removeEntry(ctx context.Context, id, p string, folder bool) error {
	return m.changeEntry(ctx, id, p, func(vol *Volume, dir *fsys.Folder, base string) error {
		info, err := dir.Lstat(base)
		if err == nil {
			err = vol.allow(dir, base, info.Mode())
		}
		switch {
		case err != nil:
			return err
		case folder && !info.IsDir():
			return v1.Errorf(v1.InvalidRequest, "Not a folder: %s", v1.EscapePath(p))
		case !folder && info.IsDir():
			return notAFile(p)
		}
		err = dir.Remove(base)
		if fsys.Is(err, syscall.ENOTEMPTY, syscall.EEXIST) {
			return v1.Errorf(v1.FileExists, "Folder is not empty: %s", v1.EscapePath(p))
		}
		if err == nil {
			countRemoved(vol, info)
		}
		return err
	})
}

// countRemoved takes a removed entry from the usage. What an open handle keeps is counted until a
// scan finds that it is closed.
func countRemoved(vol *Volume, removed fs.FileInfo) {
	for _, h := range vol.m.handles(vol.id) {
		if info, err := h.file.Stat(); err == nil && os.SameFile(info, removed) {
			return
		}
	}
	vol.quota.Add(-onDisk(removed))
}

// Move moves src to dst, which must not exist.
func (m *Manager) Move(ctx context.Context, id, src, dst string) error {
	return m.move(ctx, id, src, dst, false)
}

// MoveOver moves src to dst, and replaces what is there as rename(2) does.
func (m *Manager) MoveOver(ctx context.Context, id, src, dst string) error {
	return m.move(ctx, id, src, dst, true)
}

func (m *Manager) move(ctx context.Context, id, src, dst string, replace bool) error {
	src, err := cleanEntry(src)
	if err != nil {
		return err
	}
	return m.changeEntry(ctx, id, dst, func(vol *Volume, to *fsys.Folder, base string) error {
		from, err := vol.root.OpenFolder(path.Dir(src))
		if err != nil {
			return refuse(src, err)
		}
		defer from.Close()
		name := path.Base(src)
		moved, err := from.Lstat(name)
		if err != nil {
			return refuse(src, err)
		}
		if err := vol.allowMove(from, name, to, base); err != nil {
			return err
		}
		if !replace {
			err = from.RenameNew(name, to, base)
		} else {
			err = vol.renameOver(from, name, moved, to, base)
		}
		switch {
		case errors.Is(err, syscall.EINVAL):
			return intoItself("move")
		case fsys.Is(err, syscall.ENOTEMPTY, syscall.ENOTDIR, syscall.EISDIR):
			return exists(dst)
		}
		return err
	})
}

// allowMove refuses a move whose source, or what it replaces, is denied.
func (vol *Volume) allowMove(from *fsys.Folder, name string, to *fsys.Folder, base string) error {
	if err := vol.allowTree(from, name, to, base); err != nil {
		return err
	}
	return vol.allowFound(to, base)
}

// renameOver renames the entry name of from, which moved describes, to base in to, and replaces what has
// that name.
func (vol *Volume) renameOver(from *fsys.Folder, name string, moved fs.FileInfo, to *fsys.Folder, base string) error {
	vol.replacing.Lock()
	defer vol.replacing.Unlock()
	replaced, missing := to.Lstat(base)
	err := from.RenameTo(name, to, base, 0)
	if err == nil && missing == nil && fsys.InodeOf(replaced) != fsys.InodeOf(moved) {
		countRemoved(vol, replaced)
	}
	return err
}

// Symlink creates a link at p. Its target, from the folder of p, must stay in the
// volume.
func (m *Manager) Symlink(ctx context.Context, id, target, p string) error {
	if len(target) > v1.MaxPath || !inside(p, target) {
		return v1.ErrInvalidPath
	}
	if _, err := clean(path.Join(path.Dir(p), target)); err != nil {
		return err
	}
	return m.changeEntry(ctx, id, p, func(vol *Volume, dir *fsys.Folder, base string) error {
		if err := vol.allow(dir, base, 0); err != nil {
			return err
		}
		if err := vol.withBlock(func() error { return dir.Symlink(target, base) }); err != nil {
			return err
		}
		o, err := newOwner(dir)
		if err != nil {
			return err
		}
		return o.finishLink(dir, base)
	})
}

// SetAttributes changes the attributes of the file or folder that p leads to, and reports
// whether they were others before. It checks all of them before it changes one.
func (m *Manager) SetAttributes(ctx context.Context, id, p string, a v1.FileAttributes) (changed bool, err error) {
	p, err = clean(p)
	if err != nil {
		return false, err
	}
	err = m.change(ctx, id, p, func(vol *Volume) error {
		dir, base, err := vol.resolve(p)
		if err != nil {
			return err
		}
		defer dir.Close()
		if err := vol.allowFound(dir, base); err != nil {
			return err
		}
		found, err := fsys.Find(dir.Root, base)
		if err != nil {
			return err
		}
		defer found.Close()
		changed, err = setAttributes(vol, found, p, a)
		return err
	})
	return changed, err
}

// setAttributes changes the attributes of the file or folder of a handle, whose path is p.
func setAttributes(vol *Volume, f *os.File, p string, a v1.FileAttributes) (changed bool, err error) {
	info, err := f.Stat()
	if err == nil {
		err = checkAttributes(p, info, a)
	}
	if err != nil {
		return false, err
	}
	if a.Size != nil && *a.Size != info.Size() {
		if err := resize(vol, f, info, *a.Size); err != nil {
			return false, err
		}
		changed = true
	}
	if a.Mode != nil && *a.Mode == a.Mode.Perm() && *a.Mode != info.Mode().Perm() {
		if err := os.Chmod(fsys.Self(f), *a.Mode); err != nil {
			return changed, err
		}
		changed = true
	}
	if a.Accessed != nil || a.Edited != nil {
		if err := os.Chtimes(fsys.Self(f), timeOf(a.Accessed), timeOf(a.Edited)); err != nil {
			return changed, err
		}
		changed = true
	}
	return changed, nil
}

// timeOf returns the zero time for nil, which changes nothing.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// checkAttributes refuses what no client may set. A mode or an owner that the file has
// already is allowed.
func checkAttributes(p string, info fs.FileInfo, a v1.FileAttributes) error {
	same := func(want *uint32, have uint32) bool { return want == nil || *want == have }
	switch {
	case !info.Mode().IsRegular() && !info.IsDir(), !same(a.UID, fsys.Stat(info).Uid), !same(a.GID, fsys.Stat(info).Gid):
		return v1.ErrInvalidPath
	case a.Mode == nil || *a.Mode == info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky):
	case *a.Mode != a.Mode.Perm() || p == root:
		return v1.ErrInvalidPath
	}
	if a.Size != nil && (*a.Size < 0 || !info.Mode().IsRegular()) {
		return notAFile(p)
	}
	return nil
}

// resize sets the size of a regular file, which info describes. Growth must fit in the limit,
// although it occupies nothing until it is written.
func resize(vol *Volume, f *os.File, info fs.FileInfo, size int64) error {
	if err := vol.quota.Fits(max(0, size-max(info.Size(), inodeBytes(info)))); err != nil {
		return err
	}
	if err := os.Truncate(fsys.Self(f), size); err != nil {
		return err
	}
	if after, err := f.Stat(); err == nil {
		vol.quota.Add(inodeBytes(after) - inodeBytes(info))
	}
	return nil
}
