package volume

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// commitInto moves what was unfolded in the temporary folder to dest. On failure
// all that was moved is moved back.
func commitInto(t *tree, x *temp, stage *folder, dest string) error {
	if _, err := t.Stat(dest); is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		if err := stage.dir.Chmod(0o755); err != nil {
			return err
		}
		if err := x.rename(dest); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	to, err := newFolder(t.Root, dest)
	if err != nil {
		return err
	}
	defer to.close()
	g := merge{t: t, stage: stage, dest: to}
	if err := g.both(func() error { return g.check(dest) }); err != nil {
		return err
	}
	if err := g.both(func() error { return g.move("") }); err != nil {
		return errors.Join(err, g.undo())
	}
	return to.dir.Sync()
}

// merge moves a tree into another one, a folder at a time.
type merge struct {
	t           *tree
	stage, dest *folder
	from, to    *descent // the folder at hand, on either side
	done        []moved
	held        int64 // bytes that done takes
}

// moved is one entry that was moved, or swapped with the one in its place. All
// of a folder share the text of its path, which may be long.
type moved struct {
	up, name string
	swap     bool
}

// movedHeld is what is kept of a moved entry beside its name.
const movedHeld = 64

// both begins at the top of both trees.
func (g *merge) both(do func() error) (err error) {
	if g.from, err = newDescent(g.stage.fd()); err != nil {
		return err
	}
	defer g.from.close()
	if g.to, err = newDescent(g.dest.fd()); err != nil {
		return err
	}
	defer g.to.close()
	return do()
}

// in does something in the folder name of either side.
func (g *merge) in(name string, do func() error) error {
	if err := g.from.enter(name); err != nil {
		return err
	}
	if err := g.to.enter(name); err != nil {
		return errors.Join(err, g.from.leave())
	}
	if err := do(); err != nil {
		return err
	}
	if err := g.from.leave(); err != nil {
		return err
	}
	return g.to.leave()
}

// check refuses a file where there is a folder, or a folder where there is a
// file, before anything is moved. Up is the path of the folder at hand in the
// volume.
func (g *merge) check(up string) error {
	for {
		name, err := g.from.last().names.read(g.from.dir())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.Join(g.t.ctx(), g.checkOne(name, up))
		}
		if err != nil {
			return err
		}
	}
}

func (g *merge) checkOne(name, up string) error {
	there, err := g.to.dir().lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	here, err := g.from.dir().lstat(name)
	if err != nil {
		return err
	}
	if here.IsDir() != there.IsDir() {
		return exists(path.Join(up, name))
	}
	if !here.IsDir() {
		return nil
	}
	return g.in(name, func() error { return g.check(path.Join(up, name)) })
}

// move moves every entry of the folder at hand to that of the other side. Where
// there is a file already the two are swapped, so that it can be undone.
func (g *merge) move(up string) error {
	var names []string // all of them first: the folder changes on the way
	err := g.from.dir().each(func(name string) error {
		if g.held += movedHeld + int64(len(name)); g.held > g.t.m.opt.Limits.Held {
			return v1.Errorf(v1.SizeLimit, "Too many files to merge with a folder that exists: unfold into a new one")
		}
		names = append(names, name)
		return g.t.ctx()
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := g.one(name, up); err != nil {
			return err
		}
	}
	return g.to.dir().file.Sync()
}

func (g *merge) one(name, up string) error {
	if err := g.t.ctx(); err != nil {
		return err
	}
	from, to := g.from.dir(), g.to.dir()
	err := from.moveNew(name, to, name)
	if !errors.Is(err, fs.ErrExist) {
		return g.record(moved{up: up, name: name}, err)
	}
	here, err := from.lstat(name)
	if err != nil {
		return err
	}
	if here.IsDir() {
		g.held += int64(len(up) + len(name))
		return g.in(name, func() error { return g.move(up + name + "/") })
	}
	err = from.moveTo(name, to, name, unix.RENAME_EXCHANGE)
	if errors.Is(err, syscall.EINVAL) { // a file system that cannot swap: it stays replaced
		return from.moveTo(name, to, name, 0)
	}
	return g.record(moved{up: up, name: name, swap: true}, err)
}

func (g *merge) record(m moved, err error) error {
	if err == nil {
		g.done = append(g.done, m)
	}
	return err
}

// undo moves all back, the last one first.
func (g *merge) undo() (err error) {
	for i := len(g.done) - 1; i >= 0; i-- {
		err = errors.Join(err, g.back(g.done[i]))
	}
	return err
}

func (g *merge) back(m moved) error {
	dir, base := root+"/"+m.up, m.name
	from, err := openDirfd(g.stage.Root, dir)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := openDirfd(g.dest.Root, dir)
	if err != nil {
		return err
	}
	defer to.close()
	if m.swap {
		return from.moveTo(base, to, base, unix.RENAME_EXCHANGE)
	}
	return to.moveTo(base, from, base, 0)
}
