package volume

import (
	"sync"
	"sync/atomic"
)

// openedFiles are the files that InPlace has open. A file without a name occupies disk
// space as long as it is open, and no walk of the volume finds it.
type openedFiles struct {
	mu  sync.Mutex
	all map[inode]*countedFile
}

// countedFile is a file that is open. Its handles count it once, however many they are.
type countedFile struct {
	handles map[*openedFile]bool
	onDisk  int64         // bytes that count for it
	shrinks atomic.Uint64 // how often a handle has made it smaller
}

func newOpenedFiles() *openedFiles { return &openedFiles{all: map[inode]*countedFile{}} }

func (o *openedFiles) add(h *openedFile) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all[h.inode] == nil {
		o.all[h.inode] = &countedFile{handles: map[*openedFile]bool{}, onDisk: h.onDisk}
	}
	h.counted = o.all[h.inode]
	h.counted.handles[h], h.shrinks = true, h.counted.shrinks.Load()
}

// count sets the bytes that count for a file, and returns how many more they are; known is false if
// it is not open.
func (o *openedFiles) count(i inode, onDisk int64) (more int64, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.all[i]
	if f == nil {
		return 0, false
	}
	return f.set(onDisk), true
}

// remove removes a handle, and returns how many more bytes count for its file, as it is on the
// disk now. The last handle frees a file without a name.
func (o *openedFiles) remove(h *openedFile) (more int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := h.counted
	if !f.handles[h] {
		return 0
	}
	delete(f.handles, h)
	last := len(f.handles) == 0
	if last {
		delete(o.all, h.inode)
	}
	onDisk, named, err := h.onDiskNow()
	switch {
	case err != nil:
		return 0
	case last && !named:
		onDisk = 0
	case !h.mode.Write:
		return 0
	}
	return f.set(onDisk)
}

// set sets the bytes that count, and returns how many more they are. openedFiles.mu is held.
func (f *countedFile) set(onDisk int64) (more int64) {
	more = onDisk - f.onDisk
	if f.onDisk = onDisk; more < 0 {
		f.shrinks.Add(1)
	}
	return more
}

// abandon marks the files of a volume whose tree was replaced or removed.
func (o *openedFiles) abandon(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.all {
		for h := range f.handles {
			if h.id == id {
				h.gone.Store(true)
			}
		}
	}
}

// has reports whether a file is open.
func (o *openedFiles) has(i inode) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[i] != nil
}

// unlinked returns the bytes on disk of the files of a volume without a name.
func (o *openedFiles) unlinked(id string) (bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.all {
		for h := range f.handles {
			if h.id == id {
				bytes += h.unlinked()
			}
			break // the others have the same file
		}
	}
	return bytes
}
