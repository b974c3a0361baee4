package volume

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	v1 "berth/api/v1"
)

// settleBytes is after how many bytes that were written to an open file its growth is counted as it
// is on the disk.
const settleBytes = 1 << 20

// openedFile is a v1.FileHandle.
//
// A write reserves what the file may grow by before it is written: the growth of its
// size, or of what it occupies if it fills holes. Now and then, and at Close, the file
// is measured, and its growth counted instead. What several handles of a file do to each
// other's counts is corrected by the next scan.
type openedFile struct {
	m       *Manager
	id      string // of the volume
	path    string // in it
	file    *os.File
	mode    v1.OpenMode
	created bool // by this open
	emptied bool // by this open
	quota   *quota

	gone atomic.Bool // the volume was restored or removed, and has not this file any more

	mu      sync.Mutex
	res     *reservation
	onDisk  int64 // bytes on disk when the file was measured last
	base    int64 // size up to which the file occupies nothing new, unless it has holes
	size    int64 // largest end of a write, and at least base
	written int64 // bytes since the file was measured last
	failed  error // the file was removed because of it
}

func newOpenedFile(vol *openVolume, f *os.File, p string, mode v1.OpenMode, info fs.FileInfo) *openedFile {
	h := &openedFile{m: vol.m, id: vol.id, path: p, file: f, mode: mode,
		quota: vol.quota, res: vol.newReservation(0)}
	h.measured(info)
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
		if h.id == id {
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
	seen := map[inode]bool{}
	for _, h := range m.handles(id) {
		info, err := h.file.Stat()
		if err != nil || seen[inodeOf(info)] {
			continue
		}
		seen[inodeOf(info)] = true
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink == 0 && !h.gone.Load() {
			bytes += inodeBytes(st)
		}
	}
	return bytes
}

// measured records what is on the disk. The caller holds mu, or is the only user.
func (h *openedFile) measured(info fs.FileInfo) {
	h.onDisk, h.written = diskBytes(info), 0
	h.base = max(info.Size(), min(h.onDisk, max(blockBytes, roundUp(info.Size()))))
	h.size = h.base
}

// Changed reports whether the open has created or emptied the file.
func (h *openedFile) Changed() bool { return h.created || h.emptied }

// Stat describes the file.
func (h *openedFile) Stat() (fs.FileInfo, error) { return h.file.Stat() }

// ReadAt reads from the file.
func (h *openedFile) ReadAt(p []byte, off int64) (int, error) {
	if !h.mode.Read {
		return 0, v1.Errorf(v1.WriteDenied, "File is not open for reading")
	}
	return h.file.ReadAt(p, off)
}

// WriteAt writes to the file after it has reserved the space.
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
	if h.mode.Append {
		return h.append(p)
	}
	h.mu.Lock()
	err = h.reserve(off, int64(len(p)))
	h.mu.Unlock()
	if err != nil {
		return 0, h.refuse(err)
	}
	if n, err = h.file.WriteAt(p, off); err != nil {
		h.mu.Lock()
		h.settle() // a failed write keeps no reservation
		h.mu.Unlock()
	}
	return n, h.refuse(err)
}

// change begins a change of the file, unless its volume is or was restored. The caller calls
// done at the end.
func (h *openedFile) change() (done func(), err error) {
	done, err = h.m.gate.change(h.id)
	if err == nil && h.gone.Load() {
		done()
		return nil, errRestored
	}
	return done, err
}

// errRestored is the refusal of a write to a file of the tree before a restore.
var errRestored = v1.Errorf(v1.VolumeRestoring, "Volume was restored: open the file again")

// append writes at the end of the file.
func (h *openedFile) append(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	info, err := h.file.Stat()
	if err != nil {
		return 0, h.refuse(err)
	}
	if err = h.reserve(info.Size(), int64(len(p))); err != nil {
		return 0, h.refuse(err)
	}
	if n, err = h.file.WriteAt(p, info.Size()); err != nil {
		h.settle()
	}
	return n, h.refuse(err)
}

// refuse returns the error that a client receives.
func (h *openedFile) refuse(err error) error { return refuse(h.path, err) }

// reserve reserves what a write of n bytes at off may occupy. Over the limit it removes
// a file that this open has created. The caller holds mu.
func (h *openedFile) reserve(off, n int64) error {
	if h.failed != nil {
		return h.failed
	}
	if off < 0 {
		return v1.Errorf(v1.InvalidRequest, "Offset must not be negative")
	}
	if off > math.MaxInt64-n {
		return h.fail(v1.ErrSizeLimit)
	}
	if h.written >= settleBytes {
		h.settle()
	}
	h.size, h.written = max(h.size, off+n), h.written+n
	need := max(h.size-h.base, min(h.written, h.size-h.onDisk))
	if grow := need - h.res.Bytes(); grow > 0 {
		if err := h.res.Grow(grow); err != nil {
			return h.fail(err)
		}
	}
	return nil
}

// settle counts what is on the disk instead of what was reserved. The caller holds mu.
func (h *openedFile) settle() {
	if info, err := h.file.Stat(); err == nil {
		before := h.onDisk
		h.measured(info)
		if grown := h.onDisk - before; grown > 0 && !h.gone.Load() {
			h.quota.Add(grown)
		}
		h.res.Release()
	}
}

// truncate sets the size of the file, and counts what that frees. The caller holds mu.
func (h *openedFile) truncate(size int64) error {
	before, err := h.file.Stat()
	if err == nil {
		err = h.file.Truncate(size)
	}
	if err != nil {
		return err
	}
	if after, err := h.file.Stat(); err == nil {
		h.measured(after)
		h.quota.Add(h.onDisk - diskBytes(before))
		h.res.Release()
	}
	return nil
}

// fail returns err. A new file that is over the limit is removed first. The caller
// holds mu.
func (h *openedFile) fail(err error) error {
	if errors.Is(err, v1.ErrSizeLimit) && h.created {
		h.failed = err
		h.remove()
	} else {
		h.settle()
	}
	return err
}

// remove removes the file, if its name is still that of this file, and frees what it
// held.
func (h *openedFile) remove() {
	vol, err := h.m.open(context.Background(), h.id)
	if err != nil {
		return // the volume is gone
	}
	defer vol.close()
	own, err := h.file.Stat()
	named, err2 := vol.root.Lstat(h.path)
	if err != nil || err2 != nil || !os.SameFile(own, named) || vol.root.Remove(h.path) != nil {
		return
	}
	_ = h.truncate(0)
	h.quota.Add(-h.onDisk)
}

// Close counts what is on the disk, and closes the file.
func (h *openedFile) Close() error {
	h.m.mu.Lock()
	delete(h.m.opened, h)
	h.m.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mode.Write && h.failed == nil {
		h.settle()
	}
	h.res.Release()
	return h.file.Close()
}
