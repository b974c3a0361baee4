package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// InPlace operates on single entries of volumes as POSIX does: it changes files where
// they are, makes no parents, and removes no trees. Paths obey v1.CheckPath. What
// it has changed is not flushed to the disk.
type InPlace struct{ files Files }

// InPlace returns the operations in place on the same volumes.
func (f Files) InPlace() InPlace { return InPlace{f} }

// Stat describes the entry that p leads to, through links that stay in the volume.
func (n InPlace) Stat(ctx context.Context, id, p string) (info fs.FileInfo, err error) {
	return n.describe(ctx, id, p, func(vol *openVolume, p string) (fs.FileInfo, error) { return vol.root.Stat(p) })
}

// Lstat describes the entry at p, which may be a link.
func (n InPlace) Lstat(ctx context.Context, id, p string) (fs.FileInfo, error) {
	return n.describe(ctx, id, p, func(vol *openVolume, p string) (fs.FileInfo, error) { return vol.root.Lstat(p) })
}

func (n InPlace) describe(ctx context.Context, id, p string, stat func(*openVolume, string) (fs.FileInfo, error)) (info fs.FileInfo, err error) {
	p, err = clean(p)
	if err != nil {
		return nil, err
	}
	err = n.files.readVolume(ctx, id, p, func(vol *openVolume) (err error) {
		info, err = stat(vol, p)
		return err
	})
	return info, err
}

// Readlink returns the target of the link at p, which may be outside the volume.
func (n InPlace) Readlink(ctx context.Context, id, p string) (target string, err error) {
	p, err = cleanEntry(p)
	if err != nil {
		return "", err
	}
	err = n.files.readVolume(ctx, id, p, func(vol *openVolume) (err error) {
		target, err = vol.root.Readlink(p)
		if errors.Is(err, syscall.EINVAL) {
			return v1.Errorf(v1.InvalidRequest, "Not a link: %s", v1.EscapePath(p))
		}
		return err
	})
	return target, err
}

// openedFolder is a v1.FolderHandle.
type openedFolder struct {
	*folder
	names []string // that were read already
}

// OpenFolder opens the folder p to list it.
func (n InPlace) OpenFolder(ctx context.Context, id, p string) (v1.FolderHandle, error) {
	p, err := clean(p)
	if err != nil {
		return nil, err
	}
	var f *folder
	err = n.files.readVolume(ctx, id, p, func(vol *openVolume) (err error) {
		f, err = openFolder(vol.root, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &openedFolder{folder: f}, nil
}

// Next skips entries that were removed since their name was read.
func (f *openedFolder) Next() (fs.FileInfo, error) {
	for {
		if len(f.names) == 0 {
			var err error
			f.names, err = f.file.Readdirnames(namesAtOnce)
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

// Close closes the folder.
func (f *openedFolder) Close() error {
	f.close()
	return nil
}

// Space returns the space of a volume.
func (n InPlace) Space(ctx context.Context, id string) (space v1.VolumeSpace, err error) {
	err = n.files.readVolume(ctx, id, root, func(vol *openVolume) (err error) {
		space, err = spaceLeft(vol)
		return err
	})
	return space, err
}

func spaceLeft(vol *openVolume) (v1.VolumeSpace, error) {
	top, err := vol.top()
	if err != nil {
		return v1.VolumeSpace{}, err
	}
	defer top.close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(top.file.Fd()), &st); err != nil {
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
