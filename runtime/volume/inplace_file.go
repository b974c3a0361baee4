package volume

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// OpenFile opens the regular file at p in place, and nothing else. It follows links
// that stay in the volume.
func (m *Manager) OpenFile(ctx context.Context, id, p string, mode v1.OpenMode) (v1.FileHandle, error) {
	p, err := cleanEntry(p)
	if err != nil {
		return nil, err
	}
	var h *openedFile
	open := m.read
	if mode.Write {
		open = m.change
	}
	err = open(ctx, id, p, func(vol *Volume) (err error) {
		h, err = openInPlace(vol, p, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// createTries is how often an operation begins again because another program has created,
// changed or removed the file meanwhile.
const createTries = 3

// openInPlace opens the file that p leads to, or creates it, if it may.
func openInPlace(vol *Volume, p string, mode v1.OpenMode) (h *openedFile, err error) {
	for range createTries {
		if h, err = openExisting(vol, p, mode); !mode.Create || !errors.Is(err, fs.ErrNotExist) {
			return h, err
		}
		place, failed := vol.follow(p) // of the new file
		if failed != nil {
			return nil, failed
		}
		if mode.Exclusive && place != p { // a link without a target
			return nil, exists(p)
		}
		if h, err = createInPlace(vol, place, mode); !errors.Is(err, fs.ErrExist) {
			return h, err
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
func createInPlace(vol *Volume, p string, mode v1.OpenMode) (*openedFile, error) {
	dir, base := split(p)
	if vol.denied != nil {
		in, err := vol.root.OpenFolder(dir)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		if err := vol.allow(in, base, 0); err != nil {
			return nil, err
		}
	}
	var f *os.File
	err := vol.withBlock(func() (err error) {
		if f, err = vol.root.OpenFile(p, openFlags(mode)|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
			return err
		}
		o, err := vol.ownerIn(dir)
		if err == nil {
			err = o.finish(f, newFileMode)
		}
		if err != nil {
			f.Close()
			err = errors.Join(err, vol.root.Remove(p))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	h := newOpenedFile(vol, f, p, mode)
	h.created = true
	return h, nil
}

// openExisting opens the regular file that p leads to.
func openExisting(vol *Volume, p string, mode v1.OpenMode) (*openedFile, error) {
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

// openedFile is a v1.FileHandle. A write reserves what the file may grow by before it is written,
// and commits afterwards what it grew by.
type openedFile struct {
	vol     *Volume // closed
	path    string  // in the volume
	file    *os.File
	mode    v1.OpenMode
	created bool // by this open
	emptied bool // by this open

	gone atomic.Bool // the volume was restored or removed, and has not this file any more

	mu     sync.Mutex // held while the file's size changes
	failed error      // the file was removed because of it
}

func newOpenedFile(vol *Volume, f *os.File, p string, mode v1.OpenMode) *openedFile {
	h := &openedFile{vol: vol, path: p, file: f, mode: mode}
	vol.m.mu.Lock()
	defer vol.m.mu.Unlock()
	vol.m.opened[h] = true
	return h
}

// handles returns the open files of a volume.
func (m *Manager) handles(id string) (list []*openedFile) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h := range m.opened {
		if h.vol.id == id {
			list = append(list, h)
		}
	}
	return list
}

// abandon ends the writes to the files of a volume whose tree was replaced or removed.
func (m *Manager) abandon(id string) {
	for _, h := range m.handles(id) {
		h.gone.Store(true)
	}
}

// unlinked returns the bytes on disk of the files of a volume that are open and have no name: no
// walk finds them.
func (m *Manager) unlinked(id string) (bytes int64) {
	seen := map[fsys.Inode]bool{}
	for _, h := range m.handles(id) {
		info, err := h.file.Stat()
		if err != nil || seen[fsys.InodeOf(info)] || h.gone.Load() {
			continue
		}
		seen[fsys.InodeOf(info)] = true
		if fsys.Stat(info).Nlink == 0 {
			bytes += inodeBytes(info)
		}
	}
	return bytes
}

// Changed reports whether the open has created or emptied the file.
func (h *openedFile) Changed() bool { return h.created || h.emptied }

// ReadAt reads from the file.
func (h *openedFile) ReadAt(p []byte, off int64) (int, error) {
	if !h.mode.Read {
		return 0, v1.Errorf(v1.WriteDenied, "File is not open for reading")
	}
	return h.file.ReadAt(p, off)
}

// WriteAt writes to the file, at its end if it is open for that. Over the limit it removes a file
// that this open has created.
func (h *openedFile) WriteAt(p []byte, off int64) (n int, err error) {
	if !h.mode.Write {
		return 0, v1.Errorf(v1.WriteDenied, "File is not open for writing")
	}
	if len(p) == 0 {
		return 0, nil
	}
	done, err := h.change()
	if err != nil {
		return 0, err
	}
	defer done()
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err = h.write(p, off)
	return n, refuse(h.path, err)
}

// change begins a change of the file, unless its volume is or was restored. The caller calls
// done at the end.
func (h *openedFile) change() (done func(), err error) {
	done, err = h.vol.change()
	if err == nil && h.gone.Load() {
		done()
		return nil, errRestored
	}
	return done, err
}

// errRestored is the refusal of a write to a file of the tree before a restore.
var errRestored = v1.Errorf(v1.VolumeRestoring, "Volume was restored: open the file again")

// write is WriteAt for a caller that holds mu.
func (h *openedFile) write(p []byte, off int64) (n int, err error) {
	if h.failed != nil {
		return 0, h.failed
	}
	before, err := h.file.Stat()
	if err != nil {
		return 0, err
	}
	if h.mode.Append {
		off = before.Size()
	}
	if off < 0 {
		return 0, v1.Errorf(v1.InvalidRequest, "Offset must not be negative")
	}
	if off > math.MaxInt64-int64(len(p)) {
		return 0, h.fail(v1.ErrSizeLimit)
	}
	res := h.vol.newReservation(0)
	defer res.Release()
	if err := res.Grow(growth(before, off, int64(len(p)))); err != nil {
		return 0, h.fail(err)
	}
	n, err = h.file.WriteAt(p, off)
	if after, failed := h.file.Stat(); failed == nil {
		res.Commit(inodeBytes(after) - inodeBytes(before))
	}
	return n, err
}

// growth returns how many bytes on disk a write of n bytes at off may add to a file: what it adds to
// the size, or all of it if it may fill holes.
func growth(before fs.FileInfo, off, n int64) int64 {
	if inodeBytes(before) < before.Size() {
		return max(n, off+n-before.Size())
	}
	return max(0, off+n-before.Size())
}

// fail returns err. A new file that is over the limit is removed first. The caller
// holds mu.
func (h *openedFile) fail(err error) error {
	if errors.Is(err, v1.ErrSizeLimit) && h.created {
		h.failed = err
		h.remove()
	}
	return err
}

// remove removes the file, if its name is still that of this file, and frees what it
// held.
func (h *openedFile) remove() {
	vol, err := h.vol.m.open(context.Background(), h.vol.id)
	if err != nil {
		return // the volume is gone
	}
	defer vol.close()
	own, err := h.file.Stat()
	named, err2 := vol.root.Lstat(h.path)
	if err != nil || err2 != nil || !os.SameFile(own, named) || vol.root.Remove(h.path) != nil {
		return
	}
	_ = h.file.Truncate(0)
	vol.quota.Add(-inodeBytes(own))
}

// Close closes the file.
func (h *openedFile) Close() error {
	h.vol.m.mu.Lock()
	delete(h.vol.m.opened, h)
	h.vol.m.mu.Unlock()
	return h.file.Close()
}
