package volume

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// settleIn moves what was unfolded in the temporary folder to dest. On failure
// all that was moved is moved back.
func settleIn(t *tree, x *temp, stage *folder, dest string) error {
	if _, err := t.Stat(dest); is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		if err := stage.dir.Chmod(0o755); err != nil {
			return err
		}
		if err := x.appear(dest); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	to, err := newFolder(t.Root, dest)
	if err != nil {
		return err
	}
	defer to.close()
	g := merge{t: t, from: stage.Root, to: to.Root}
	if err := g.check(stage.Root, to.Root, dest); err != nil {
		return err
	}
	if err := g.move(stage, to, ""); err != nil {
		return errors.Join(err, g.undo())
	}
	return to.dir.Sync()
}

// merge moves a tree into another one, a folder at a time.
type merge struct {
	t        *tree
	from, to *os.Root
	done     []moved
	held     int64 // bytes that done takes
}

// moved is one entry that was moved, or swapped with the one in its place. All
// of a folder share the text of its path, which may be long.
type moved struct {
	up, name string
	swap     bool
}

// movedHeld is what is kept of a moved entry beside its name.
const movedHeld = 64

// check refuses a file where there is a folder, or a folder where there is a
// file, before anything is moved. Up is the path of to in the volume.
func (g *merge) check(from, to *os.Root, up string) error {
	return eachName(from, func(name string) error {
		there, err := to.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return g.t.ctx()
		}
		if err != nil {
			return err
		}
		here, err := from.Lstat(name)
		if err != nil {
			return err
		}
		if here.IsDir() != there.IsDir() {
			return exists(path.Join(up, name))
		}
		if !here.IsDir() {
			return g.t.ctx()
		}
		return g.both(from, to, name, func(from, to *folder) error {
			return g.check(from.Root, to.Root, path.Join(up, name))
		})
	})
}

// both opens the folder name on either side.
func (g *merge) both(from, to *os.Root, name string, do func(from, to *folder) error) error {
	a, err := newFolder(from, name)
	if err != nil {
		return err
	}
	defer a.close()
	b, err := newFolder(to, name)
	if err != nil {
		return err
	}
	defer b.close()
	return do(a, b)
}

// move moves every entry of from to the folder to. Where there is a file
// already the two are swapped, so that it can be undone.
func (g *merge) move(from, to *folder, up string) error {
	var names []string // all of them first: the folder changes on the way
	err := eachName(from.Root, func(name string) error {
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
		if err := g.one(from, to, name, up); err != nil {
			return err
		}
	}
	return to.dir.Sync()
}

func (g *merge) one(from, to *folder, name, up string) error {
	if err := g.t.ctx(); err != nil {
		return err
	}
	err := from.moveNew(name, to, name)
	if !errors.Is(err, fs.ErrExist) {
		return g.note(moved{up: up, name: name}, err)
	}
	here, err := from.Lstat(name)
	if err != nil {
		return err
	}
	if here.IsDir() {
		g.held += int64(len(up) + len(name))
		return g.both(from.Root, to.Root, name, func(from, to *folder) error {
			return g.move(from, to, up+name+"/")
		})
	}
	err = from.moveTo(name, to, name, unix.RENAME_EXCHANGE)
	if errors.Is(err, syscall.EINVAL) { // a file system that cannot swap: it stays replaced
		return from.moveTo(name, to, name, 0)
	}
	return g.note(moved{up: up, name: name, swap: true}, err)
}

func (g *merge) note(m moved, err error) error {
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
	from, err := newFolder(g.from, dir)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := newFolder(g.to, dir)
	if err != nil {
		return err
	}
	defer to.close()
	if m.swap {
		return from.moveTo(base, to, base, unix.RENAME_EXCHANGE)
	}
	return to.moveTo(base, from, base, 0)
}
