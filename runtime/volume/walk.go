package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// item is one entry that a walk visits.
type item struct {
	in   *dirfd // its folder
	name string // in that folder
	info fs.FileInfo
	at   *descent
	up   string
}

// path returns the entry's path from the start of the walk.
func (it item) path() string { return it.up + it.at.path(it.name) }

// errTooDeep ends a walk that must be complete.
var errTooDeep = errors.New("folders are nested too deeply")

// walker visits a tree, each folder before its entries, in the order of the disk.
// It follows no links and holds a few handles at any depth. It may miss entries
// that are moved meanwhile.
type walker struct {
	ctxErr       func() error // returns the error of the operation's context
	maxDepth     int          // levels below the start; 0 means that only maxNameBytes bounds them
	maxNameBytes int64        // bytes of memory of the names from the start; 0 means no bound
	visit        func(item) error
	onTooDeep    func(item) error // called for a folder below maxDepth
	// onLeave is called after the walk left folders; depth is that of the current
	// one. It may be nil.
	onLeave func(depth int) error
	// skip reports whether to skip an entry. top is true for entries of the start
	// folder. It may be nil.
	skip func(top bool, name string) bool
}

// walk visits the entries below start. up is the path of start with a trailing
// slash. maxDepth counts from level folders above start.
func (w *walker) walk(start *dirfd, up string, level int) error {
	s, err := newDescent(start)
	if err != nil {
		return err
	}
	defer s.close()
	for {
		if err := w.ctxErr(); err != nil {
			return err
		}
		name, err := s.last().names.read(s.dir())
		switch {
		case err == nil:
			err = w.visitEntry(s, name, up, level)
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
	return w.notifyLeave(s)
}

func (w *walker) notifyLeave(s *descent) error {
	if w.onLeave == nil {
		return nil
	}
	return w.onLeave(s.depth())
}

// visitEntry visits an entry. It skips one that was removed since its name was read.
func (w *walker) visitEntry(s *descent, name, up string, level int) error {
	if w.skip != nil && w.skip(s.depth() == 0 && up == "", name) {
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
		return w.onTooDeep(it)
	}
	if err := s.enter(name); err != nil {
		return errors.Join(ignoreGone(err), w.notifyLeave(s))
	}
	return nil
}

func (w *walker) tooDeep(s *descent, level int) bool {
	return w.maxDepth > 0 && level+s.depth()+1 >= w.maxDepth || w.maxNameBytes > 0 && s.nameBytes > w.maxNameBytes
}

// hidden returns which entries a walk from the folder start skips: in the volume's
// root all temporary names; elsewhere only those of operations in flight, because
// the walk may reach the root through a link. So a tenant cannot hide files under
// such a name in another folder.
func (t *tree) hidden(start string) func(top bool, name string) bool {
	return func(top bool, name string) bool {
		return isTemp(name) && (start == root && top || t.m.inUse(name))
	}
}

// ignoreGone returns nil if err means that a folder was removed or replaced.
func ignoreGone(err error) error {
	if is(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.ELOOP) || escapes(err) {
		return nil
	}
	return err
}

// eachName calls f for every name in the folder r, without keeping them in memory.
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
	var all dirReader
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
