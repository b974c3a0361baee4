package volume

import (
	"context"
	"io/fs"
	"syscall"

	"berth/runtime/volume/fsys"
)

// maxDepth is how many levels of folders an operation enters: it has two handles for each. A volume
// with more counts as over its limit, and they can still be removed.
const maxDepth = 256

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
		return fsys.IgnoreMissing(err)
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
	return fsys.IgnoreMissing(err)
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
	return fsys.IgnoreMissing(err)
}

// empty removes the entries of the folder name.
func (r *remover) empty(in *fsys.Folder, name string, info fs.FileInfo, level int) error {
	sub, err := in.Enter(name, info)
	if err != nil {
		return fsys.IgnoreMissing(err)
	}
	defer sub.Close()
	return sub.Each(func(name string, _ fs.FileInfo, _ error) error { return r.remove(sub, name, level) })
}
