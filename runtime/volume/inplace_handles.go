package volume

import "sync"

// openedFiles are the files that InPlace has open. A file without a name occupies disk
// space as long as it is open, and no walk of the volume finds it.
type openedFiles struct {
	mu  sync.Mutex
	all map[inode]map[*openedFile]bool
}

func newOpenedFiles() *openedFiles { return &openedFiles{all: map[inode]map[*openedFile]bool{}} }

func (o *openedFiles) add(h *openedFile) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all[h.inode] == nil {
		o.all[h.inode] = map[*openedFile]bool{}
	}
	o.all[h.inode][h] = true
}

// remove removes a handle, and reports whether it was the last one of its file.
func (o *openedFiles) remove(h *openedFile) (last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all[h.inode], h)
	if len(o.all[h.inode]) > 0 {
		return false
	}
	delete(o.all, h.inode)
	return true
}

// abandon marks the files of a volume whose tree was replaced or removed.
func (o *openedFiles) abandon(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, handles := range o.all {
		for h := range handles {
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
	return len(o.all[i]) > 0
}

// unlinked returns the bytes on disk of the files of a volume without a name.
func (o *openedFiles) unlinked(id string) (bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, handles := range o.all {
		for h := range handles {
			if h.id == id {
				bytes += h.unlinked()
			}
			break // the others have the same file
		}
	}
	return bytes
}
