package sftp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	v1 "berth/api/v1"
)

// handlers answer the requests of one channel. Package sftp has resolved the ".."
// components of their paths.
type handlers struct {
	session *session
	guard   *guard
}

// relative returns a path from the volume's root.
func relative(path string) string {
	if path = strings.TrimPrefix(path, "/"); path == "" {
		return "."
	}
	return path
}

// Fileread opens a file for reading.
func (h *handlers) Fileread(r *sftp.Request) (io.ReaderAt, error) { return h.OpenFile(r) }

// Filewrite opens a file for writing.
func (h *handlers) Filewrite(r *sftp.Request) (io.WriterAt, error) { return h.OpenFile(r) }

// OpenFile opens a file. The mode of a new file is 0644, whatever the client asks for.
func (h *handlers) OpenFile(r *sftp.Request) (opened sftp.WriterAtReaderAt, err error) {
	s, path, flags := h.session, relative(r.Filepath), r.Pflags()
	defer s.failed(&err)
	mode := v1.OpenMode{Read: flags.Read, Write: flags.Write || flags.Append, Append: flags.Append}
	switch {
	case mode.Write:
		mode.Create, mode.Exclusive, mode.Truncate = flags.Creat, flags.Excl, flags.Trunc
		if err := s.mayChange(); err != nil {
			return nil, err
		}
	case !mode.Read:
		return nil, errFlags
	}
	if mode.Append {
		h.guard.appends.Store(true)
	}
	leave, err := s.openHandle()
	if err != nil {
		return nil, err
	}
	defer func() {
		if opened == nil {
			leave()
		}
	}()
	handle, err := s.server.deps.Files.OpenFile(s.files(), s.volume, path, mode)
	if err != nil {
		return nil, s.statusOf(path, err)
	}
	f := &file{session: s, path: path, handle: handle, leave: leave}
	if mode.Write {
		s.writing.Store(path, f)
	}
	if handle.Changed() {
		if err := f.entry.begin(s, path); err != nil {
			f.Close()
			return nil, s.statusOf(path, err)
		}
	}
	return f, nil
}

// file is an open file of a client. It counts bytes, and stores the entry of the file in
// the audit log.
type file struct {
	session *session
	path    string
	handle  v1.FileHandle
	leave   func()

	entry fileEntry

	mu      sync.Mutex
	refused error // the last refusal of a write
}

// ReadAt reads from the file.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	defer f.session.failed(&err)
	if off < 0 || off > math.MaxInt64-int64(len(p)) { // no file is so large, and the kernel returns EINVAL
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
	f.session.writing.CompareAndDelete(f.path, f)
	err = f.handle.Close()
	f.mu.Lock()
	refused := f.refused
	f.mu.Unlock()
	return f.session.statusOf(f.path, errors.Join(err, f.entry.complete(f.session, refused)))
}

// Filelist opens a folder to list it, or describes a file. That of a handle is the one at its path.
func (h *handlers) Filelist(r *sftp.Request) (opened sftp.ListerAt, err error) {
	s, path := h.session, relative(r.Filepath)
	defer s.failed(&err)
	if r.Method != "List" {
		info, err := s.server.deps.Files.Stat(s.files(), s.volume, path)
		return described{info}, s.statusOf(path, err)
	}
	leave, err := s.openHandle()
	if err != nil {
		return nil, err
	}
	defer func() {
		if opened == nil {
			leave()
		}
	}()
	handle, err := s.server.deps.Files.OpenFolder(s.files(), s.volume, path)
	if err != nil {
		return nil, s.statusOf(path, err)
	}
	return &folder{session: s, path: path, handle: handle, leave: leave}, nil
}

// Lstat describes a file or a link.
func (h *handlers) Lstat(r *sftp.Request) (_ sftp.ListerAt, err error) {
	s, path := h.session, relative(r.Filepath)
	defer s.failed(&err)
	info, err := s.server.deps.Files.Lstat(s.files(), s.volume, path)
	return described{info}, s.statusOf(path, err)
}

// Readlink returns the target of a link.
func (h *handlers) Readlink(path string) (target string, err error) {
	s, path := h.session, relative(path)
	defer s.failed(&err)
	target, err = s.server.deps.Files.Readlink(s.files(), s.volume, path)
	return target, s.statusOf(path, err)
}

// StatVFS returns the space of the volume.
func (h *handlers) StatVFS(r *sftp.Request) (_ *sftp.StatVFS, err error) {
	s, path := h.session, relative(r.Filepath)
	defer s.failed(&err)
	if _, err := s.server.deps.Files.Stat(s.files(), s.volume, path); err != nil {
		return nil, s.statusOf(path, err)
	}
	space, err := s.server.deps.Files.Space(s.files(), s.volume)
	if err != nil {
		return nil, s.statusOf(path, err)
	}
	const block = 4096
	total, free := uint64(space.Total/block), uint64(space.Free/block)
	return &sftp.StatVFS{Bsize: block, Frsize: block, Blocks: total, Bfree: free, Bavail: free,
		Files: uint64(space.Files) + free, Ffree: free, Favail: free, Namemax: v1.MaxComponent}, nil
}

// described lists one file.
type described struct{ info fs.FileInfo }

// ListAt is part of sftp.ListerAt.
func (d described) ListAt(list []os.FileInfo, _ int64) (int, error) {
	return copy(list, []os.FileInfo{d.info}), nil
}

// folder lists an open folder.
type folder struct {
	mu      sync.Mutex // reads of content of its handle come beside one another
	session *session
	path    string
	handle  v1.FolderHandle
	leave   func()
}

// ListAt returns the next entries. The offset is always that of the next one.
func (f *folder) ListAt(list []os.FileInfo, _ int64) (n int, err error) {
	defer f.session.failed(&err)
	f.mu.Lock()
	defer f.mu.Unlock()
	for n < len(list) && err == nil {
		if list[n], err = f.handle.Next(); err == nil {
			n++
		}
	}
	return n, f.session.statusOf(f.path, err)
}

// Close closes the folder.
func (f *folder) Close() (err error) {
	defer f.session.failed(&err)
	defer f.leave()
	return f.handle.Close()
}

// Filecmd makes a change.
func (h *handlers) Filecmd(r *sftp.Request) (err error) {
	s, files := h.session, h.session.server.deps.Files
	defer s.failed(&err)
	path, target := relative(r.Filepath), relative(r.Target)
	switch r.Method {
	case "Mkdir":
		return s.change("folder.create", false, func() error { return files.MakeFolder(s.files(), s.volume, path) }, path)
	case "Remove":
		return s.change("file.delete", true, func() error { return files.RemoveFile(s.files(), s.volume, path) }, path)
	case "Rmdir":
		return s.change("folder.delete", true, func() error { return files.RemoveFolder(s.files(), s.volume, path) }, path)
	case "Rename":
		return h.rename(path, target, files.Move)
	case "Symlink": // Filepath is the link's target as the client sent it
		return s.change("link.create", false, func() error { return files.Symlink(s.files(), s.volume, r.Filepath, target) }, target)
	case "Setstat":
		return h.setAttributes(r, path)
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename renames a file, and replaces what has the new name.
func (h *handlers) PosixRename(r *sftp.Request) (err error) {
	defer h.session.failed(&err)
	return h.rename(relative(r.Filepath), relative(r.Target), h.session.server.deps.Files.MoveOver)
}

// rename renames a file by move, a method of Files.
func (h *handlers) rename(path, target string, move func(ctx context.Context, volume, source, destination string) error) error {
	s := h.session
	return s.change("file.rename", true, func() error { return move(s.files(), s.volume, path, target) }, path, target)
}

// setAttributes changes the attributes of a file. Those of a file that the session has
// open for writing are part of its entry. A file that has them already has no entry.
func (h *handlers) setAttributes(r *sftp.Request, path string) error {
	s := h.session
	a, action := attributesOf(r)
	if action == "" { // nothing to change
		_, err := s.server.deps.Files.Stat(s.files(), s.volume, path)
		return s.statusOf(path, err)
	}
	if err := s.mayChange(); err != nil {
		return err
	}
	changed, err := s.server.deps.Files.SetAttributes(s.files(), s.volume, path, a)
	if !changed {
		return s.statusOf(path, err)
	}
	var failed error // the first of several changes has an entry, also if another one failed
	if open, is := s.writing.Load(path); is {
		failed = open.(*file).entry.begin(s, path)
	} else {
		_, failed = s.record(action, path, false)
	}
	return s.statusOf(path, errors.Join(err, failed))
}

// attributesOf returns the attributes that a client sets, and the action of the change.
func attributesOf(r *sftp.Request) (a v1.FileAttributes, action string) {
	flags, values := r.AttrFlags(), r.Attributes()
	if values == nil {
		return a, ""
	}
	if flags.Acmodtime {
		accessed, edited := time.Unix(int64(values.Atime), 0), time.Unix(int64(values.Mtime), 0)
		a.Accessed, a.Edited, action = &accessed, &edited, "file.touch"
	}
	if flags.UidGid {
		a.UID, a.GID, action = &values.UID, &values.GID, "file.chown"
	}
	if flags.Permissions {
		mode := values.FileMode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
		a.Mode, action = &mode, "file.chmod"
	}
	if flags.Size {
		size := int64(min(values.Size, 1<<62))
		a.Size, action = &size, "file.truncate"
	}
	return a, action
}
