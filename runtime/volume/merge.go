package volume

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/walk"
)

// commitInto moves the extracted files from the temporary folder stage to dest. If
// it fails, it moves everything back.
func commitInto(vol *openVolume, x *temp, stage *folder, dest string) error {
	if _, err := vol.root.Stat(dest); is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		if err := stage.dir.File().Chmod(0o755); err != nil {
			return err
		}
		if err := x.rename(dest); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	to, err := newFolder(vol.root, dest)
	if err != nil {
		return err
	}
	defer to.close()
	g := merge{vol: vol, stage: stage, dest: to}
	if err := g.openBoth(func() error { return g.check(dest) }); err != nil {
		return err
	}
	if err := g.openBoth(func() error { return g.move("") }); err != nil {
		return errors.Join(err, g.undo())
	}
	return to.sync()
}

// merge moves a tree into another tree, one folder at a time.
type merge struct {
	vol         *openVolume
	stage, dest *folder
	from, to    *walk.Stack // the current folder on each side
	done        []moved
	nameBytes   int64 // bytes of memory of done
}

// moved is one entry that was moved, or swapped with the entry of the same name.
// All entries of a folder share the string up, which may be long.
type moved struct {
	up, name string
	swap     bool
}

// movedOverhead is the memory of a moved entry besides its name, in bytes.
const movedOverhead = 64

// openBoth calls do with both stacks at the top of their trees.
func (g *merge) openBoth(do func() error) (err error) {
	if g.from, err = walk.NewStack(g.stage.dir); err != nil {
		return err
	}
	defer g.from.Close()
	if g.to, err = walk.NewStack(g.dest.dir); err != nil {
		return err
	}
	defer g.to.Close()
	return do()
}

// inFolder calls do with both stacks in the folder name.
func (g *merge) inFolder(name string, do func() error) error {
	if err := g.from.Enter(name); err != nil {
		return err
	}
	if err := g.to.Enter(name); err != nil {
		return errors.Join(err, g.from.Leave())
	}
	if err := do(); err != nil {
		return err
	}
	if err := g.from.Leave(); err != nil {
		return err
	}
	return g.to.Leave()
}

// check returns an error if a file would replace a folder or a folder a file. It
// runs before anything is moved. up is the volume path of the current folder.
func (g *merge) check(up string) error {
	for {
		name, err := g.from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.Join(g.vol.ctxErr(), g.checkEntry(name, up))
		}
		if err != nil {
			return err
		}
	}
}

func (g *merge) checkEntry(name, up string) error {
	there, err := g.to.Dir().Lstat(name)
	if err != nil {
		return walk.IgnoreMissing(err)
	}
	here, err := g.from.Dir().Lstat(name)
	if err != nil {
		return err
	}
	if here.IsDir() != there.IsDir() {
		return exists(path.Join(up, name))
	}
	if !here.IsDir() {
		return nil
	}
	return g.inFolder(name, func() error { return g.check(path.Join(up, name)) })
}

// move moves every entry of the current folder to the other side. A file that
// exists there is swapped, so that the move can be undone.
func (g *merge) move(up string) error {
	var names []string // read before the first move, which changes the folder
	err := g.from.Dir().Each(func(name string) error {
		if g.nameBytes += movedOverhead + int64(len(name)); g.nameBytes > g.vol.m.opt.Limits.NameBytes {
			return v1.Errorf(v1.SizeLimit, "Too many files to merge with a folder that exists: extract into a new folder")
		}
		names = append(names, name)
		return g.vol.ctxErr()
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := g.moveEntry(name, up); err != nil {
			return err
		}
	}
	return g.to.Dir().File().Sync()
}

func (g *merge) moveEntry(name, up string) error {
	if err := g.vol.ctxErr(); err != nil {
		return err
	}
	from, to := g.from.Dir(), g.to.Dir()
	err := from.RenameNew(name, to, name)
	if !errors.Is(err, fs.ErrExist) {
		return g.record(moved{up: up, name: name}, err)
	}
	here, err := from.Lstat(name)
	if err != nil {
		return err
	}
	if here.IsDir() {
		g.nameBytes += int64(len(up) + len(name))
		return g.inFolder(name, func() error { return g.move(up + name + "/") })
	}
	err = from.Rename(name, to, name, unix.RENAME_EXCHANGE)
	if errors.Is(err, syscall.EINVAL) { // this file system cannot swap: the file is replaced for good
		return from.Rename(name, to, name, 0)
	}
	return g.record(moved{up: up, name: name, swap: true}, err)
}

func (g *merge) record(m moved, err error) error {
	if err == nil {
		g.done = append(g.done, m)
	}
	return err
}

// undo moves all entries back, the last one first.
func (g *merge) undo() (err error) {
	for i := len(g.done) - 1; i >= 0; i-- {
		err = errors.Join(err, g.undoMove(g.done[i]))
	}
	return err
}

func (g *merge) undoMove(m moved) error {
	dir, base := root+"/"+m.up, m.name
	from, err := walk.OpenDir(g.stage.root, dir)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := walk.OpenDir(g.dest.root, dir)
	if err != nil {
		return err
	}
	defer to.Close()
	if m.swap {
		return from.Rename(base, to, base, unix.RENAME_EXCHANGE)
	}
	return to.Rename(base, from, base, 0)
}
