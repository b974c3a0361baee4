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
	"berth/runtime/volume/quota"
)

// settleBytes is how many bytes an open file reserves before they are counted as they
// are on the disk.
const settleBytes = 1 << 20

// openedFile is a v1.FileHandle.
//
// A write reserves what the file may grow by before it is written: the growth of its
// size, or of what it occupies if it fills holes. Now and then, and at Close, the file
// is measured and counted instead.
type openedFile struct {
	m       *Manager
	id      string // of the volume
	path    string // in it
	file    *os.File
	inode   inode
	mode    v1.OpenMode
	created bool // by this open
	emptied bool // by this open
	quota   *quota.Quota

	gone atomic.Bool // the volume was restored or removed, and has not this file any more

	mu      sync.Mutex
	res     *quota.Reservation
	counted *countedFile
	shrinks uint64 // of counted when the file was measured last
	onDisk  int64  // bytes on disk when the file was measured last
	base    int64  // size up to which the file occupies nothing new, unless it has holes
	size    int64  // largest end of a write, and at least base
	written int64  // bytes since the file was counted last
	failed  error  // the file was removed because of it
}

func newOpenedFile(vol *openVolume, f *os.File, p string, mode v1.OpenMode, info fs.FileInfo) *openedFile {
	h := &openedFile{m: vol.m, id: vol.id, path: p, file: f, mode: mode,
		quota: vol.quota, res: vol.newReservation(0), inode: inodeOf(info)}
	h.measured(info)
	vol.m.opened.add(h)
	return h
}

// measured records what is on the disk. The caller holds mu, or is the only user.
func (h *openedFile) measured(info fs.FileInfo) {
	h.onDisk, h.written = diskBytes(info), 0
	h.base = max(info.Size(), min(h.onDisk, max(quota.Block, quota.RoundUp(info.Size()))))
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
	if h.res.Bytes() >= settleBytes || h.shrinks != h.counted.shrinks.Load() {
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
		h.measured(info)
		more, _ := h.m.opened.count(h.inode, h.onDisk)
		h.quota.Add(more)
		h.res.Release()
		h.shrinks = h.counted.shrinks.Load()
	}
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
	_ = h.file.Truncate(0)
	more, _ := h.m.opened.count(h.inode, 0)
	h.quota.Add(more)
	h.res.Release()
	h.onDisk = 0
}

// Close counts what is on the disk, and closes the file. It frees a file without a name
// that no other handle has open.
func (h *openedFile) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if more := h.m.opened.remove(h); h.failed == nil && !h.gone.Load() {
		h.quota.Add(more)
	}
	h.res.Release()
	return h.file.Close()
}

// unlinked returns the bytes on disk of a file without a name; 0 if it has one.
func (h *openedFile) unlinked() int64 {
	onDisk, named, err := h.onDiskNow()
	if err != nil || named {
		return 0
	}
	return onDisk
}

// onDiskNow returns the bytes on disk, and whether the file has a name.
func (h *openedFile) onDiskNow() (bytes int64, named bool, err error) {
	info, err := h.file.Stat()
	if err != nil {
		return 0, false, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return diskBytes(info), !ok || st.Nlink > 0, nil
}
