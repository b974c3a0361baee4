package volume

import (
	"errors"
	"io/fs"
	"path"
	"syscall"
)

// commitInto moves the extracted files from the temporary folder stage, the entry x, to dest. It
// returns how many bytes on disk the files had that it replaced.
func commitInto(vol *openVolume, x *temp, stage *folder, dest string) (freed int64, err error) {
	if _, err := vol.root.Stat(dest); is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		if err := stage.file.Chmod(0o755); err != nil {
			return 0, err
		}
		if err := x.rename(dest); !errors.Is(err, fs.ErrExist) {
			return 0, err
		}
	}
	to, err := openFolder(vol.root, dest)
	if err != nil {
		return 0, err
	}
	defer to.close()
	g := merge{vol: vol}
	if err := g.check(stage, to, dest); err != nil {
		return 0, err
	}
	err = g.move(stage, to)
	return g.freed, err
}

// merge moves a tree into another tree.
type merge struct {
	vol   *openVolume
	freed int64 // bytes on disk of files that were replaced
}

// each calls do for each entry of a folder.
func (g *merge) each(from *folder, do func(name string, here fs.FileInfo) error) error {
	return from.each(func(name string, here fs.FileInfo, err error) error {
		if err := errors.Join(err, g.vol.ctxErr()); err != nil {
			return err
		}
		return do(name, here)
	})
}

// both calls do with the folder name of from and that of to.
func (g *merge) both(from, to *folder, name string, here, there fs.FileInfo, do func(from, to *folder) error) error {
	sub, err := from.enter(name, here)
	if err != nil {
		return err
	}
	defer sub.close()
	dest, err := to.enter(name, there)
	if err != nil {
		return err
	}
	defer dest.close()
	return do(sub, dest)
}

// check returns an error if a file would replace a folder or a folder a file. It runs before
// anything is moved. up is the volume path of the folder to.
func (g *merge) check(from, to *folder, up string) error {
	return g.each(from, func(name string, here fs.FileInfo) error {
		there, err := to.Lstat(name)
		if err != nil {
			return ignoreMissing(err)
		}
		if here.IsDir() != there.IsDir() {
			return exists(path.Join(up, name))
		}
		if !here.IsDir() {
			return nil
		}
		return g.both(from, to, name, here, there, func(from, to *folder) error { return g.check(from, to, path.Join(up, name)) })
	})
}

// move moves every entry of from to the folder to, where it replaces files, and makes the names
// durable.
func (g *merge) move(from, to *folder) error {
	err := g.each(from, func(name string, here fs.FileInfo) error {
		err := from.renameNew(name, to, name)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		there, err := to.Lstat(name)
		if err != nil {
			return err
		}
		if here.IsDir() {
			return g.both(from, to, name, here, there, g.move)
		}
		if err := from.rename(name, to, name, 0); err != nil {
			return err
		}
		g.freed += onDisk(there)
		return nil
	})
	return errors.Join(err, to.sync())
}
