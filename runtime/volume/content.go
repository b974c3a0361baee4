package volume

import (
	"errors"
	"io/fs"
	"path"
	"syscall"

	"berth/runtime/volume/fsys"
)

// enteringName is the name of a complete tree whose entries are being moved into the directory of its volume, which
// had been emptied before.
const enteringName = "entering"

// replaceContent is exchange for a directory that must stay: it and the temporary entry name exchange their entries,
// and the directory gets the attributes of the entry. After an error it is as it was. After a kill, continueContent
// takes the next step: the complete tree has the name restoredName until the directory is empty, then enteringName. Then
// only the time of the directory itself is that of the kill.
func replaceContent(in *fsys.Folder, name string, base *fsys.Folder, id string) error {
	root, err := enter(base, id)
	if err != nil {
		return err
	}
	defer root.Close()
	before, err := root.File.Stat()
	if err != nil {
		return err
	}
	if err := errors.Join(in.RenameTo(name, in, restoredName, 0), in.Sync()); err != nil {
		return err
	}
	if err := continueContent(in, name, root); err != nil {
		return errors.Join(err, revertContent(in, name, root), finishAs(root, before))
	}
	return nil
}

// continueContent takes the steps of replaceContent that are left, if there are any. The old entries get into the
// folder old of in.
func continueContent(in *fsys.Folder, old string, root *fsys.Folder) error {
	if _, err := in.Lstat(restoredName); err == nil {
		removed, err := in.MakeFolder(old)
		if err != nil {
			return err
		}
		defer removed.Close()
		err = moveContent(root, removed)
		if err == nil {
			err = errors.Join(in.RenameTo(restoredName, in, enteringName, 0), in.Sync())
		}
		if err != nil {
			return err
		}
	}
	tree, err := enter(in, enteringName)
	if err != nil {
		return fsys.IgnoreMissing(err)
	}
	defer tree.Close()
	info, err := tree.File.Stat() // before its entries leave, which changes its time
	if err == nil {
		err = moveContent(tree, root)
	}
	if err == nil {
		err = errors.Join(finishAs(root, info), root.Sync())
	}
	if err != nil {
		return err
	}
	return errors.Join(in.Remove(enteringName), in.Sync())
}

// revertContent undoes the steps that continueContent has taken. A kill meanwhile makes them be taken again.
func revertContent(in *fsys.Folder, name string, root *fsys.Folder) error {
	if tree, err := enter(in, enteringName); err == nil {
		defer tree.Close()
		if err := moveContent(root, tree); err != nil {
			return err
		}
		if err := errors.Join(in.RenameTo(enteringName, in, restoredName, 0), in.Sync()); err != nil {
			return err
		}
	}
	if removed, err := enter(in, name); err == nil {
		defer removed.Close()
		if err := moveContent(removed, root); err != nil {
			return err
		}
		if err := in.Remove(name); err != nil {
			return err
		}
	}
	return errors.Join(in.RenameTo(restoredName, in, name, 0), in.Sync())
}

// moveContent moves all entries of a folder to another, and makes both durable.
func moveContent(from, to *fsys.Folder) error {
	for moved := true; moved; { // a folder that changes while it is read may be read in part
		moved = false
		err := from.Each(func(name string, _ fs.FileInfo, _ error) error {
			moved = true
			return from.RenameTo(name, to, name, 0)
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(to.Sync(), from.Sync())
}

// removeContent moves the entries of the directory of a volume to a new folder of in.
func removeContent(base *fsys.Folder, id string, in *fsys.Folder) error {
	root, err := enter(base, id)
	if err != nil {
		return err
	}
	defer root.Close()
	removed, err := in.MakeFolder(randomName(removedPrefix))
	if err != nil {
		return err
	}
	defer removed.Close()
	return moveContent(root, removed)
}

// completeContent continues a killed restore of a volume in a directory that must stay.
func completeContent(base *fsys.Folder, id string) error {
	in, err := base.OpenFolder(path.Join(tempDir, id))
	if err != nil {
		return fsys.IgnoreMissing(err)
	}
	defer in.Close()
	root, err := enter(base, id)
	if err != nil {
		return fsys.IgnoreMissing(err)
	}
	defer root.Close()
	return continueContent(in, randomName(removedPrefix), root)
}

// enter opens the folder name of f, and no link in its place.
func enter(f *fsys.Folder, name string) (*fsys.Folder, error) {
	info, err := f.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, syscall.ENOTDIR
	}
	return f.Enter(name, info)
}

// finishAs gives a folder the attributes of another.
func finishAs(f *fsys.Folder, info fs.FileInfo) error {
	return attributes{ownerOf(info), info.Mode() &^ fs.ModeType, info.ModTime()}.finishFolder(f)
}
