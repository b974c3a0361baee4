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
	in   *os.Root // its folder
	name string   // in that folder
	path string   // from the walk's start
	info fs.FileInfo
}

// errTooDeep ends a walk that may not leave anything out.
var errTooDeep = errors.New("folders are nested too deeply")

// walker visits a tree, each folder before what is in it, in the order of the
// disk. It follows no links, and holds two handles a level.
type walker struct {
	end   func() error // the operation's end, as an error
	depth int          // levels below the start
	visit func(item) error
	deep  func(item) error // what is said of a folder below depth
	// hidden says what is left out; nil is nothing.
	hidden func(folder, name string) bool
}

// walk visits what is in r, whose path from the start is up, with its slash.
func (w *walker) walk(r *os.Root, up string, level int) error {
	d, err := r.OpenFile(root, dirFlags, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		list, err := d.Readdirnames(chunk)
		for _, name := range list {
			if err := w.one(r, name, up, level); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// one visits an entry. What has vanished since its name was read is left out.
func (w *walker) one(r *os.Root, name, up string, level int) error {
	if err := w.end(); err != nil {
		return err
	}
	if w.hidden != nil && w.hidden(up, name) {
		return nil
	}
	info, err := r.Lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	it := item{in: r, name: name, path: up + name, info: info}
	if err := w.visit(it); err != nil || !info.IsDir() {
		return err
	}
	if level+1 >= w.depth {
		return w.deep(it)
	}
	sub, err := openFolder(r, name)
	if err != nil {
		return ignoreGone(err)
	}
	defer sub.Close()
	return w.walk(sub, it.path+"/", level+1)
}

// hidden says what a walk from the folder start leaves out: in the volume's root
// all that berth made; elsewhere, where a link may have led back to the root,
// what it is making right now. So a tenant can hide nothing under such a name.
func (t *tree) hidden(start string) func(folder, name string) bool {
	return func(folder, name string) bool {
		return isTemp(name) && (start == root && folder == "" || t.m.inUse(name))
	}
}

// ignoreGone ignores that a folder has vanished, or turned into something else.
func ignoreGone(err error) error {
	if is(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.ELOOP) || escapes(err) {
		return nil
	}
	return err
}
