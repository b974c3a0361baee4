package sftp

import (
	"errors"
	"io"
	"sync"

	v1 "berth/api/v1"
)

// file is an open file of a client. It counts bytes, and stores the entry of the file in
// the audit log.
type file struct {
	session *session
	path    string
	mode    v1.OpenMode
	handle  v1.FileHandle
	leave   func()

	entry fileEntry

	mu      sync.Mutex
	refused error // the last refusal of a write
}

// ReadAt reads from the file.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	defer f.session.failed(&err)
	if off < 0 {
		return 0, io.EOF
	}
	n, err = f.handle.ReadAt(p, off)
	f.session.server.metrics.bytes.WithLabelValues(sent).Add(float64(n))
	return n, f.session.statusOf(f.path, err)
}

// WriteAt writes to the file. The first write stores the entry.
func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	defer f.session.failed(&err)
	n, err = f.handle.WriteAt(p, off)
	f.session.server.metrics.bytes.WithLabelValues(received).Add(float64(n))
	if err != nil {
		f.mu.Lock()
		f.refused = err
		f.mu.Unlock()
		return n, f.session.statusOf(f.path, err)
	}
	if len(p) > 0 {
		err = f.entry.begin(f.session, f.path)
	}
	return n, f.session.statusOf(f.path, err)
}

// Close closes the file, and completes its entry if a write was refused.
func (f *file) Close() (err error) {
	defer f.session.failed(&err)
	defer f.leave()
	f.session.writers.remove(f)
	err = f.handle.Close()
	f.mu.Lock()
	refused := f.refused
	f.mu.Unlock()
	return f.session.statusOf(f.path, errors.Join(err, f.entry.complete(refused)))
}

// writers are the files that a session has open for writing, by path.
type writers struct {
	mu  *sync.Mutex
	all map[string]*file
}

func newWriters() writers { return writers{mu: &sync.Mutex{}, all: map[string]*file{}} }

func (w writers) add(f *file) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[f.path] = f
}

func (w writers) remove(f *file) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[f.path] == f {
		delete(w.all, f.path)
	}
}

// find returns the file that is open for writing at a path, or nil.
func (w writers) find(path string) *file {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[path]
}
