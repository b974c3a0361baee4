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
	p, err := cleanResolvedEntry(p)
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
		return os.O_RDWR | syscall.O_NOCTTY
	case mode.Write:
		return os.O_WRONLY | syscall.O_NOCTTY
	}
	return os.O_RDONLY | syscall.O_NOCTTY
}

// createInPlace creates a file at p, where nothing may be.
func createInPlace(vol *openVolume, p string, mode v1.OpenMode) (*openedFile, error) {
	f, err := vol.root.OpenFile(p, openFlags(mode)|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := finishNew(vol.m, f, 0o644)
	if err != nil {
		f.Close()
		return nil, errors.Join(err, vol.root.Remove(p))
	}
	vol.quota.Add(blockBytes)
	h := newOpenedFile(vol, f, p, mode, info)
	h.created = true
	return h, nil
}

// openExisting opens the regular file that p leads to. It opens nothing else, which might
// have effects.
func openExisting(vol *openVolume, p string, mode v1.OpenMode) (*openedFile, error) {
	info, err := vol.root.Stat(p)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, notAFile(p)
	case mode.Create && mode.Exclusive:
		return nil, exists(p)
	}
	f, err := vol.root.OpenFile(p, openFlags(mode)|syscall.O_NONBLOCK, 0) // a FIFO in its place must not block open(2)
	if err != nil {
		return nil, err
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notAFile(p)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	h := newOpenedFile(vol, f, p, mode, info)
	if mode.Truncate && mode.Write && info.Size() > 0 {
		h.emptied = true
		if err := h.truncate(0); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
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
