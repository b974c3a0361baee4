package snapshot

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/walk"
)

// ExtractOptions are the options of Extract and Merge.
type ExtractOptions struct {
	// Reserve is called before so many bytes are written. It may be nil.
	Reserve func(bytes int64) error
	// Progress is called with the bytes of files that were read so far. It may be nil.
	Progress func(bytes int64)
}

func (o ExtractOptions) reserve(n int64) error {
	if o.Reserve == nil {
		return nil
	}
	return o.Reserve(n)
}

// Extract extracts the archive a from r into the empty folder name of parent, which
// nobody else may change, and verifies it as Verify does. After an error the folder
// holds a part of the tree. What it holds is not durable yet.
func Extract(ctx context.Context, r io.Reader, a v1.SnapshotArchive, parent *walk.Dir, name string, opt ExtractOptions) error {
	t, err := newTree(parent, name, opt)
	if err != nil {
		return err
	}
	defer t.close()
	if err := read(ctx, r, a, opt.Progress, t); err != nil {
		return err
	}
	return t.leaveAll()
}

// tree is the tree that a restore creates. It is a destination.
type tree struct {
	opt   ExtractOptions
	at    *walk.Stack // from the parent of the tree's root to the current folder
	path  string      // of the current folder, from the tree's root
	dirs  []attributes
	chown bool // the process may change owners
	buf   []byte
}

// attributes are what a folder gets when it is complete: new entries change its time.
type attributes struct {
	mode, uid, gid uint32
	time           time.Time
}

func newTree(parent *walk.Dir, name string, opt ExtractOptions) (*tree, error) {
	at, err := walk.NewStack(parent)
	if err != nil {
		return nil, err
	}
	if err := at.Enter(name); err != nil {
		at.Close()
		return nil, err
	}
	return &tree{opt: opt, at: at, path: rootPath, dirs: make([]attributes, 1), chown: os.Geteuid() == 0,
		buf: make([]byte, copyBytes)}, nil
}

func (t *tree) close() { t.at.Close() }

func (e *entry) attributes() attributes { return attributes{e.mode, e.uid, e.gid, e.time} }

// add creates an entry that is no regular file.
func (t *tree) add(e *entry) error {
	if e.path == rootPath {
		t.dirs[0] = e.attributes()
		return nil
	}
	in, name, err := t.enter(e)
	if err != nil {
		return err
	}
	if err := t.opt.reserve(e.onDisk()); err != nil {
		return err
	}
	switch e.kind {
	case folder:
		return t.folder(in, name, e.attributes())
	case hardLink:
		return t.hardLink(in, name, e)
	}
	if err := in.Symlink(e.target, name); err != nil {
		return duplicate(e, err)
	}
	return t.finish(in, name, e.attributes())
}

// enter goes to the folder of e, which must be the current one or above it.
func (t *tree) enter(e *entry) (in *walk.Dir, name string, err error) {
	up, name := path.Split(e.path)
	if up = strings.TrimSuffix(up, "/"); up == "" {
		up = rootPath
	}
	for t.path != up {
		if t.path == rootPath {
			return nil, "", damaged("%q is not in a folder before it", shorten(e.path))
		}
		if err := t.leave(); err != nil {
			return nil, "", err
		}
	}
	return t.at.Dir(), name, nil
}

// duplicate returns the refusal of an entry whose name is taken.
func duplicate(e *entry, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return damaged("it has %q twice", shorten(e.path))
	}
	return err
}

// folder creates a folder and enters it. It gets its attributes when it is left.
func (t *tree) folder(in *walk.Dir, name string, a attributes) error {
	full := path.Join(t.path, name)
	if err := in.Mkdir(name); err != nil {
		return duplicate(&entry{path: full}, err)
	}
	return t.down(name, a)
}

// down enters the folder name.
func (t *tree) down(name string, a attributes) error {
	if err := t.at.Enter(name); err != nil {
		return err
	}
	t.path = path.Join(t.path, name)
	t.dirs = append(t.dirs, a)
	return nil
}

// leave sets the attributes of the current folder and goes to its parent.
func (t *tree) leave() error {
	last := len(t.dirs) - 1
	a, name := t.dirs[last], t.at.Name(t.at.Depth())
	t.dirs, t.path = t.dirs[:last], path.Dir(t.path)
	if err := t.own(t.at.Dir().File(), a); err != nil {
		return err
	}
	if err := t.at.Leave(); err != nil {
		return err
	}
	return t.at.Dir().Chtimes(name, a.time)
}

// leaveAll leaves all folders, the root of the tree included.
func (t *tree) leaveAll() (err error) {
	for len(t.dirs) > 0 && err == nil {
		err = t.leave()
	}
	return err
}

// own sets the owner and the mode of an open file. The mode comes last: a new owner
// resets some of its bits.
func (t *tree) own(f *os.File, a attributes) error {
	fd := int(f.Fd())
	if err := unix.Fchown(fd, int(a.uid), int(a.gid)); err != nil && (t.chown || !errors.Is(err, syscall.EPERM)) {
		return os.NewSyscallError("fchown", err)
	}
	return os.NewSyscallError("fchmod", unix.Fchmod(fd, a.mode))
}

// finish sets the owner and the time of an entry.
func (t *tree) finish(in *walk.Dir, name string, a attributes) error {
	if err := in.Chown(name, int(a.uid), int(a.gid)); err != nil && (t.chown || !errors.Is(err, syscall.EPERM)) {
		return err
	}
	return in.Chtimes(name, a.time)
}

// hardLink links to a file that was extracted before.
func (t *tree) hardLink(in *walk.Dir, name string, e *entry) error {
	from, base, err := t.find(e.target)
	if err == nil {
		defer from.Close()
		var info fs.FileInfo
		if info, err = from.Lstat(base); err == nil && !info.Mode().IsRegular() {
			err = walk.ErrNotRegular
		}
	}
	if is(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.ELOOP, walk.ErrNotRegular) {
		return damaged("the hard link %q leads to %q, which is no file before it", shorten(e.path), shorten(e.target))
	}
	if err != nil {
		return err
	}
	return duplicate(e, walk.Link(from, base, in, name))
}

// find opens the folder of the entry p of the tree. It follows no link.
func (t *tree) find(p string) (in *walk.Dir, name string, err error) {
	in, err = t.at.First().Open(t.at.Name(1))
	parts := strings.Split(p, "/")
	for _, part := range parts[:len(parts)-1] {
		if err != nil {
			return nil, "", err
		}
		above := in
		in, err = above.Open(part)
		above.Close()
	}
	return in, parts[len(parts)-1], err
}

// writeEarly is the size from which the disk begins to write a file when it is
// complete, so that less is left when the tree is made durable.
const writeEarly = 128 << 10

// file creates a regular file.
func (t *tree) file(e *entry, parts []extent, content io.Reader) error {
	in, name, err := t.enter(e)
	if err != nil {
		return err
	}
	f, err := in.Create(name)
	if err != nil {
		return duplicate(e, err)
	}
	defer f.Close()
	if err := t.opt.reserve(e.onDisk() - e.data); err != nil {
		return err
	}
	for _, p := range parts {
		if err := t.part(f, p, content); err != nil {
			return err
		}
	}
	if e.sparse {
		if err := f.Truncate(e.size); err != nil {
			return err
		}
	}
	if e.data >= writeEarly {
		_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
	}
	if err := errors.Join(t.own(f, e.attributes()), f.Close()); err != nil {
		return err
	}
	return in.Chtimes(name, e.time)
}

// part writes one extent.
func (t *tree) part(f *os.File, p extent, content io.Reader) error {
	end := p.off + p.n
	for off := p.off; off < end; {
		buf := t.buf[:min(int64(len(t.buf)), end-off)]
		n, err := io.ReadFull(content, buf)
		if err != nil {
			return err
		}
		if err := t.opt.reserve(roundUp(int64(n))); err != nil {
			return err
		}
		if _, err := f.WriteAt(buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}
