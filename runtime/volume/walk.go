package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// item is one entry that a walk has come to.
type item struct {
	in   *dirfd // its folder
	name string // in that folder
	info fs.FileInfo
	at   *descent
	up   string
}

// path is that from the walk's start.
func (it item) path() string { return it.up + it.at.path(it.name) }

// errTooDeep ends a walk that may not leave anything out.
var errTooDeep = errors.New("folders are nested too deeply")

// walker visits a tree, each folder before what is in it, in the order of the
// disk. It follows no links, and holds a few handles however deep the tree is.
// What is moved meanwhile may be left out.
type walker struct {
	end   func() error // the operation's end, as an error
	depth int          // levels below the start; 0 is as many as Held has room for
	held  int64        // bytes of the names on the way down
	visit func(item) error
	deep  func(item) error // is called for a folder below depth
	// left is called when the walk has left folders; depth of them remain. Nil is
	// nothing.
	left func(depth int) error
	// hidden reports what is left out, top where it is in the folder of the start;
	// nil is nothing.
	hidden func(top bool, name string) bool
}

// walk visits what is in start, whose path is up, with its slash. It is level
// folders below where depth counts from.
func (w *walker) walk(start *dirfd, up string, level int) error {
	s, err := newDescent(start)
	if err != nil {
		return err
	}
	defer s.close()
	for {
		if err := w.end(); err != nil {
			return err
		}
		name, err := s.last().names.read(s.dir())
		switch {
		case err == nil:
			err = w.one(s, name, up, level)
		case !errors.Is(err, io.EOF):
			return err
		case s.depth() == 0:
			return nil
		default:
			err = w.leave(s)
		}
		if err != nil {
			return err
		}
	}
}

func (w *walker) leave(s *descent) error {
	if err := s.leave(); err != nil && !errors.Is(err, errMoved) {
		return err
	}
	return w.isAt(s)
}

func (w *walker) isAt(s *descent) error {
	if w.left == nil {
		return nil
	}
	return w.left(s.depth())
}

// one visits an entry. What has vanished since its name was read is left out.
func (w *walker) one(s *descent, name, up string, level int) error {
	if w.hidden != nil && w.hidden(s.depth() == 0 && up == "", name) {
		return nil
	}
	info, err := s.dir().lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	it := item{in: s.dir(), name: name, info: info, at: s, up: up}
	if err := w.visit(it); err != nil || !info.IsDir() {
		return err
	}
	if w.tooDeep(s, level) {
		return w.deep(it)
	}
	if err := s.enter(name); err != nil {
		return errors.Join(ignoreGone(err), w.isAt(s))
	}
	return nil
}

func (w *walker) tooDeep(s *descent, level int) bool {
	return w.depth > 0 && level+s.depth()+1 >= w.depth || w.held > 0 && s.held > w.held
}

// hidden reports what a walk from the folder start leaves out: in the volume's root
// all that berth made; elsewhere, where a link may have led back to the root,
// what it is making right now. So a tenant can hide nothing under such a name.
func (t *tree) hidden(start string) func(top bool, name string) bool {
	return func(top bool, name string) bool {
		return isTemp(name) && (start == root && top || t.m.inUse(name))
	}
}

// ignoreGone ignores that a folder has vanished, or turned into something else.
func ignoreGone(err error) error {
	if is(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.ELOOP) || escapes(err) {
		return nil
	}
	return err
}

// eachName calls f for every name in the folder r, without holding them all.
func eachName(r *os.Root, f func(name string) error) error {
	d, err := openDirfd(r, root)
	if err != nil {
		return err
	}
	defer d.close()
	return d.each(f)
}

// each calls f for every name in the folder.
func (d *dirfd) each(f func(name string) error) error {
	var all names
	for {
		name, err := all.read(d)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(name)
		}
		if err != nil {
			return err
		}
	}
}
