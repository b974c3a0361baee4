package sftp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	v1 "berth/api/v1"
)

// handlers answer the requests of one session. Package sftp has resolved the ".."
// components of their paths.
type handlers struct{ session *session }

// relative returns a path from the volume's root.
func relative(path string) string {
	if path = strings.TrimPrefix(path, "/"); path == "" {
		return "."
	}
	return path
}

// errUnused is the error of calls that package sftp does not make: the guard makes every
// open one for reading and writing.
var errUnused = errors.New("bad file flags")

// Fileread is part of sftp.FileReader.
func (h *handlers) Fileread(*sftp.Request) (io.ReaderAt, error) { return nil, errUnused }

// Filewrite is part of sftp.FileWriter.
func (h *handlers) Filewrite(*sftp.Request) (io.WriterAt, error) { return nil, errUnused }

// OpenFile opens a file. The mode of a new file is 0644, whatever the client asks for.
func (h *handlers) OpenFile(r *sftp.Request) (opened sftp.WriterAtReaderAt, err error) {
	s, path := h.session, relative(r.Filepath)
	defer s.failed(&err)
	mode := v1.OpenMode{
		Read: r.Flags&addedRead == 0, Write: r.Flags&addedWrite == 0, Append: r.Flags&flagAppend != 0,
		Create: r.Flags&flagCreate != 0, Exclusive: r.Flags&flagExcl != 0, Truncate: r.Flags&flagTrunc != 0,
	}
	if !mode.Write {
		mode.Create, mode.Truncate, mode.Exclusive = false, false, false
	} else if err := s.mayChange(); err != nil {
		return nil, err
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
	handle, err := s.server.deps.Files.OpenFile(s.ctx, s.volume, path, mode)
	if err != nil {
		return nil, s.statusOf(path, err)
	}
	f := &file{session: s, path: path, mode: mode, handle: handle, leave: leave}
	s.files.add(f)
	if handle.Changed() {
		if err := f.entry.begin(s, path); err != nil {
			f.Close()
			return nil, s.statusOf(path, err)
		}
	}
	return f, nil
}

// Filelist opens a folder to list it, or describes a file.
func (h *handlers) Filelist(r *sftp.Request) (opened sftp.ListerAt, err error) {
	s, path := h.session, relative(r.Filepath)
	defer s.failed(&err)
	if r.Method != "List" {
		return h.describe(r, path)
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
	handle, err := s.server.deps.Files.OpenFolder(s.ctx, s.volume, path)
	if err != nil {
		return nil, s.statusOf(path, err)
	}
	return &folder{session: s, path: path, handle: handle, leave: leave}, nil
}

// describe describes the file at a path, or that of a handle.
func (h *handlers) describe(r *sftp.Request, path string) (sftp.ListerAt, error) {
	s := h.session
	if open := s.files.any(path); open != nil && onHandle(r) {
		info, err := open.handle.Stat()
		return described{info}, s.statusOf(path, err)
	}
	info, err := s.server.deps.Files.Stat(s.ctx, s.volume, path)
	return described{info}, s.statusOf(path, err)
}

// Lstat describes a file or a link.
func (h *handlers) Lstat(r *sftp.Request) (_ sftp.ListerAt, err error) {
	s, path := h.session, relative(r.Filepath)
	defer s.failed(&err)
	info, err := s.server.deps.Files.Lstat(s.ctx, s.volume, path)
	return described{info}, s.statusOf(path, err)
}

// Readlink returns the target of a link.
func (h *handlers) Readlink(path string) (target string, err error) {
	s, path := h.session, relative(path)
	defer s.failed(&err)
	target, err = s.server.deps.Files.Readlink(s.ctx, s.volume, path)
	return target, s.statusOf(path, err)
}

// StatVFS returns the space of the volume.
func (h *handlers) StatVFS(r *sftp.Request) (_ *sftp.StatVFS, err error) {
	s, path := h.session, relative(r.Filepath)
	defer s.failed(&err)
	if _, err := s.server.deps.Files.Stat(s.ctx, s.volume, path); err != nil {
		return nil, s.statusOf(path, err)
	}
	space, err := s.server.deps.Files.Space(s.ctx, s.volume)
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
		return s.change("folder.create", false, func() error { return files.Mkdir(s.ctx, s.volume, path) }, path)
	case "Remove":
		return s.change("file.delete", true, func() error { return files.Remove(s.ctx, s.volume, path) }, path)
	case "Rmdir":
		return s.change("folder.delete", true, func() error { return files.RemoveFolder(s.ctx, s.volume, path) }, path)
	case "Rename":
		return h.rename(path, target, false)
	case "Symlink": // Filepath is the link's target as the client sent it
		return s.change("link.create", false, func() error { return files.Symlink(s.ctx, s.volume, r.Filepath, target) }, target)
	case "Setstat":
		return h.setAttributes(r, path)
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename renames a file, and replaces what has the new name.
func (h *handlers) PosixRename(r *sftp.Request) (err error) {
	defer h.session.failed(&err)
	return h.rename(relative(r.Filepath), relative(r.Target), true)
}

func (h *handlers) rename(path, target string, replace bool) error {
	s := h.session
	return s.change("file.rename", true, func() error {
		return s.server.deps.Files.Rename(s.ctx, s.volume, path, target, replace)
	}, path, target)
}

// setAttributes changes the attributes of a file. Those of a file that the session has
// open for writing are part of its entry. A file that has them already has no entry.
func (h *handlers) setAttributes(r *sftp.Request, path string) error {
	s := h.session
	a, action := attributesOf(r)
	if action == "" { // nothing to change
		_, err := s.server.deps.Files.Stat(s.ctx, s.volume, path)
		return s.statusOf(path, err)
	}
	if err := s.mayChange(); err != nil {
		return err
	}
	open := s.files.writer(path)
	var changed bool
	var err error
	if open != nil && onHandle(r) {
		changed, err = open.handle.SetAttributes(a)
	} else {
		changed, err = s.server.deps.Files.SetAttributes(s.ctx, s.volume, path, a)
	}
	switch { // the first of several changes has an entry, also if another one failed
	case !changed:
	case open != nil:
		err = errors.Join(err, open.entry.begin(s, path))
	default:
		_, failed := s.record(action, path, false)
		err = errors.Join(err, failed)
	}
	return s.statusOf(path, err)
}

// onHandle reports whether a request for attributes names its file by a handle and not by a path.
// pkg/sftp gives both the path, but a context only to those that have sent it.
func onHandle(r *sftp.Request) bool { return r.Context() == context.Background() }

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
