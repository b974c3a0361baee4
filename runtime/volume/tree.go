package volume

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"berth/runtime/volume/fsys"
)

// maxDepth is how many levels of folders an operation enters: it has two handles for each. A volume
// with more counts as over its limit, and they can still be removed.
const maxDepth = 256

// entry is an entry of a tree.
type entry struct {
	in   *fsys.Folder // that it is in
	up   string       // path of in from the start, with a trailing slash
	name string       // in that folder
	info fs.FileInfo
}

// path returns the entry's path from the start.
func (e entry) path() string { return e.up + e.name }

// lookup returns the entry name of a folder. up is the folder's path with a trailing slash.
func lookup(in *fsys.Folder, up, name string) (entry, error) {
	info, err := in.Lstat(name)
	return entry{in, up, name, info}, err
}

// walker visits a tree, each folder before its entries. It follows no links, and may miss entries
// that are moved meanwhile.
type walker struct {
	ctxErr func() error // returns the error of the operation's context
	depth  int          // levels of folders that it enters
	// visit is called for each entry. The walk ends with its error.
	visit func(entry) error
	// failed is called for an entry that cannot be described or entered. The walk ends with its
	// error. Nil: the walk ends with err.
	failed  func(err error) error
	tooDeep func() error // called for a folder that is not entered because of depth
}

// walk visits the entries of a folder, which is at a level below the start. up is its path with a
// trailing slash.
func (w *walker) walk(in *fsys.Folder, up string, level int) error {
	return in.Each(func(name string, info fs.FileInfo, err error) error {
		if err := w.ctxErr(); err != nil {
			return err
		}
		if err != nil {
			return w.fail(err)
		}
		e := entry{in, up, name, info}
		if err := w.visit(e); err != nil || !info.IsDir() {
			return err
		}
		return w.enter(e, level+1)
	})
}

// enter walks through the folder e.
func (w *walker) enter(e entry, level int) error {
	if level >= w.depth {
		return w.tooDeep()
	}
	sub, err := e.in.Enter(e.name, e.info)
	if err != nil {
		return w.fail(ignoreMissing(err))
	}
	defer sub.Close()
	return w.walk(sub, e.path()+"/", level)
}

func (w *walker) fail(err error) error {
	if err == nil || w.failed == nil {
		return err
	}
	return w.failed(err)
}

// ignoreMissing returns nil if err means that there is no such entry.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// maxEmptyTries is how often a folder is emptied while a container keeps adding entries.
const maxEmptyTries = 8

// remover removes trees of top. Nothing outside of a tree is removed, whatever folders a container
// renames and replaces by links meanwhile.
type remover struct {
	top    *fsys.Folder
	ctxErr func() error
	freed  int64    // bytes on disk
	later  []string // entries of top that were too deep in a tree
}

// removeTree removes the entry name of top and everything in it, and returns how many bytes on disk
// it has freed. If ctx ends first, it can be called again.
func removeTree(ctx context.Context, top *fsys.Folder, name string) (freed int64, err error) {
	r := remover{top: top, ctxErr: ctx.Err, later: []string{name}}
	for len(r.later) > 0 && err == nil {
		next := r.later[0]
		r.later = r.later[1:]
		err = r.remove(top, next, 0)
	}
	return r.freed, err
}

// remove removes the entry name of a folder that is level folders below top.
func (r *remover) remove(in *fsys.Folder, name string, level int) error {
	if err := r.ctxErr(); err != nil {
		return err
	}
	info, err := in.Lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	err = in.Remove(name)
	for range maxEmptyTries {
		if !fsys.Is(err, syscall.ENOTEMPTY, syscall.EEXIST) {
			break
		}
		if level == maxDepth {
			return r.moveUp(in, name)
		}
		if err := r.empty(in, name, info, level+1); err != nil {
			return err
		}
		err = in.Remove(name)
	}
	if err == nil {
		r.freed += onDisk(info)
	}
	return ignoreMissing(err)
}

// maxLater bounds the memory for names of a tree with many deep folders. Sweep removes the others.
const maxLater = 10_000

// moveUp moves an entry that is too deep to top, from where it is removed like a tree.
func (r *remover) moveUp(in *fsys.Folder, name string) error {
	moved := randomName(removedPrefix)
	err := in.RenameNew(name, r.top, moved)
	if err == nil && len(r.later) < maxLater {
		r.later = append(r.later, moved)
	}
	return ignoreMissing(err)
}

// empty removes the entries of the folder name.
func (r *remover) empty(in *fsys.Folder, name string, info fs.FileInfo, level int) error {
	sub, err := in.Enter(name, info)
	if err != nil {
		return ignoreMissing(err)
	}
	defer sub.Close()
	return sub.Each(func(name string, _ fs.FileInfo, _ error) error { return r.remove(sub, name, level) })
}
