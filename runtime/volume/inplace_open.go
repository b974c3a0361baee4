package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	v1 "berth/api/v1"
)

// OpenFile opens the regular file at p in place, and nothing else. It follows links
// that stay in the volume.
func (n InPlace) OpenFile(ctx context.Context, id, p string, mode v1.OpenMode) (v1.FileHandle, error) {
	p, err := cleanEntry(p)
	if err != nil {
		return nil, err
	}
	var h *openedFile
	open := n.files.readVolume
	if mode.Write {
		open = n.files.withVolume
	}
	err = open(ctx, id, p, func(vol *openVolume) (err error) {
		h, err = openInPlace(vol, p, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// createTries is how often an open begins again because another program has created or
// removed the file meanwhile.
const createTries = 3

// openInPlace creates the file first, if it may: most files that clients open for writing are
// new.
func openInPlace(vol *openVolume, p string, mode v1.OpenMode) (h *openedFile, err error) {
	if !mode.Create {
		return openExisting(vol, p, mode)
	}
	full := errors.Join(vol.quota.Fits(blockBytes), vol.space.Check())
	place := p // of the new file
	for range createTries {
		if full == nil {
			if h, err = createInPlace(vol, place, mode); !errors.Is(err, fs.ErrExist) {
				return h, err
			}
		}
		if h, err = openExisting(vol, p, mode); !errors.Is(err, fs.ErrNotExist) {
			return h, err
		}
		if full != nil {
			return nil, full
		}
		if mode.Exclusive { // a link without a target
			return nil, exists(p)
		}
		if place, err = vol.follow(p); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// openFlags returns the flags of open(2).
func openFlags(mode v1.OpenMode) int {
	switch {
	case mode.Write && mode.Read:
		return os.O_RDWR
	case mode.Write:
		return os.O_WRONLY
	}
	return os.O_RDONLY
}

// createInPlace creates a file at p, where nothing may be.
func createInPlace(vol *openVolume, p string, mode v1.OpenMode) (*openedFile, error) {
	f, err := vol.root.OpenFile(p, openFlags(mode)|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	dir, _ := split(p)
	o, err := vol.ownerIn(dir)
	if err == nil {
		err = o.finish(f, newFileMode)
	}
	if err != nil {
		f.Close()
		return nil, errors.Join(err, vol.root.Remove(p))
	}
	vol.quota.Add(blockBytes)
	h := newOpenedFile(vol, f, p, mode)
	h.created = true
	return h, nil
}

// openExisting opens the regular file that p leads to.
func openExisting(vol *openVolume, p string, mode v1.OpenMode) (*openedFile, error) {
	f, err := vol.openFile(p, openFlags(mode))
	if err != nil {
		return nil, err
	}
	if mode.Create && mode.Exclusive {
		f.Close()
		return nil, exists(p)
	}
	info, err := f.Stat()
	if err == nil && mode.Truncate && mode.Write && info.Size() > 0 {
		err = resize(vol, f, info, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	h := newOpenedFile(vol, f, p, mode)
	h.emptied = mode.Truncate && mode.Write && info.Size() > 0
	return h, nil
}

// inodeOf returns the identity of a file as long as it is open.
func inodeOf(info fs.FileInfo) inode {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{uint64(st.Dev), st.Ino}
}

// diskBytes returns the bytes on disk of a regular file, whatever its number of links.
func diskBytes(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size()
	}
	return inodeBytes(st)
}
