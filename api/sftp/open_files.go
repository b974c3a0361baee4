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
	f.session.server.metrics.sent.Add(float64(n))
	return n, f.session.statusOf(f.path, err)
}

// WriteAt writes to the file. The first write stores the entry.
func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	defer f.session.failed(&err)
	n, err = f.handle.WriteAt(p, off)
	f.session.server.metrics.received.Add(float64(n))
	if err != nil {
		f.mu.Lock()
		f.refused = err
		f.mu.Unlock()
	}
	if n > 0 { // also if the rest was refused
		err = errors.Join(err, f.entry.begin(f.session, f.path))
	}
	return n, f.session.statusOf(f.path, err)
}

// Close closes the file, and completes its entry if a write was refused.
func (f *file) Close() (err error) {
	defer f.session.failed(&err)
	defer f.leave()
	f.session.files.remove(f)
	err = f.handle.Close()
	f.mu.Lock()
	refused := f.refused
	f.mu.Unlock()
	return f.session.statusOf(f.path, errors.Join(err, f.entry.complete(f.session, refused)))
}

// openFiles are the files that a session has open, by path. Of several at a path it has the
// one that was opened last.
type openFiles struct {
	mu               *sync.Mutex
	writers, readers map[string]*file // readers: only for reading
}

func newOpenFiles() openFiles {
	return openFiles{mu: &sync.Mutex{}, writers: map[string]*file{}, readers: map[string]*file{}}
}

func (o openFiles) of(f *file) map[string]*file {
	if f.mode.Write {
		return o.writers
	}
	return o.readers
}

func (o openFiles) add(f *file) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of(f)[f.path] = f
}

func (o openFiles) remove(f *file) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of(f)[f.path] == f {
		delete(o.of(f), f.path)
	}
}

// writer returns the file that is open for writing at a path, or nil.
func (o openFiles) writer(path string) *file {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writers[path]
}

// any returns a file that is open at a path, or nil.
func (o openFiles) any(path string) *file {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.writers[path]; f != nil {
		return f
	}
	return o.readers[path]
}
