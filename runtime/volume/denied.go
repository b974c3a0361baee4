package volume

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
	"berth/runtime/volume/fsys"
)

// denied selects the entries of a volume that an operation may not read, write, rename or delete: what
// one of its lists selects, and what is below that. Nil selects nothing.
type denied []backup.Rules

func newDenied(lists [][]string) (d denied) {
	for _, patterns := range lists {
		d = append(d, backup.ParseRules(patterns))
	}
	return d
}

// match reports whether the entry at p, a path from the volume's root without links, is denied.
func (d denied) match(p string, mode fs.FileMode) bool {
	if p == root {
		return false
	}
	for _, rules := range d {
		for i := range len(p) {
			if p[i] == '/' && rules.Match(p[:i], fs.ModeDir) {
				return true
			}
		}
		if rules.Match(p, mode) {
			return true
		}
	}
	return false
}

func deniedFile(p string) error {
	return v1.Errorf(v1.FileDenied, "File is denied to limited tokens by denied_files of its container: %s", v1.EscapePath(p))
}

// pathOf returns the path of an open file or folder of the volume, from its root. The kernel knows it,
// whatever links have led there.
func (vol *Volume) pathOf(f *os.File) (string, error) {
	top, err := os.Readlink(fsys.Self(vol.root.File))
	if err != nil {
		return "", err
	}
	p, err := os.Readlink(fsys.Self(f))
	if err != nil {
		return "", err
	}
	if p == top {
		return root, nil
	}
	rest, is := strings.CutPrefix(p, top+"/")
	if !is { // it was moved out of the volume, or the volume was replaced
		return "", fs.ErrNotExist
	}
	return rest, nil
}

// placeOf returns the path without links of an entry that may be missing, with its parents. It
// returns p if nothing is denied.
func (vol *Volume) placeOf(p string) (string, error) {
	if vol.denied == nil {
		return p, nil
	}
	if info, err := vol.root.Stat(p); err == nil && info.IsDir() {
		f, err := vol.root.OpenFolder(p)
		if err != nil {
			return "", err
		}
		defer f.Close()
		return vol.pathOf(f.File)
	}
	at, rest := vol.deepest(p)
	f, err := vol.root.OpenFolder(at)
	if err != nil {
		return "", err
	}
	defer f.Close()
	up, err := vol.pathOf(f.File)
	return path.Join(up, rest), err
}

// allow refuses the entry base of a folder if it is denied.
func (vol *Volume) allow(in *fsys.Folder, base string, mode fs.FileMode) error {
	if vol.denied == nil {
		return nil
	}
	dir, err := vol.pathOf(in.File)
	if err != nil {
		return err
	}
	if p := path.Join(dir, base); vol.denied.match(p, mode) {
		return deniedFile(p)
	}
	return nil
}

// allowFound is allow for an entry that may exist; a missing one counts as a file.
func (vol *Volume) allowFound(in *fsys.Folder, base string) error {
	if vol.denied == nil {
		return nil
	}
	info, err := in.Lstat(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return vol.allow(in, base, 0)
	}
	return vol.allow(in, base, info.Mode())
}

// allowTree refuses the entry base of a folder if it, or anything below it, is denied where it is, or
// would be as the entry name of the folder to. to is nil if it stays where it is.
func (vol *Volume) allowTree(in *fsys.Folder, base string, to *fsys.Folder, name string) error {
	if vol.denied == nil {
		return nil
	}
	dir, err := vol.pathOf(in.File)
	if err != nil {
		return err
	}
	places := []string{path.Join(dir, base)}
	if to != nil {
		dest, err := vol.pathOf(to.File)
		if err != nil {
			return err
		}
		places = append(places, path.Join(dest, name))
	}
	return vol.allowBelow(in, base, places)
}

// allowBelow is allowTree for the places that the tree has and will have.
func (vol *Volume) allowBelow(in *fsys.Folder, base string, places []string) error {
	if vol.denied == nil {
		return nil
	}
	visit := func(e fsys.Entry) error {
		for _, place := range places {
			if p := path.Join(place, strings.TrimPrefix(e.Path(), base)); vol.denied.match(p, e.Info.Mode()) {
				return deniedFile(p)
			}
		}
		return nil
	}
	e, err := fsys.Lookup(in, root, base)
	if err != nil {
		return err
	}
	if err := visit(e); err != nil || !e.Info.IsDir() {
		return err
	}
	limits, entries := vol.m.opt.Limits, 0
	w := fsys.Walker{Check: vol.ctxErr, Depth: limits.Depth, Failed: vol.failedWalk,
		Visit: func(e fsys.Entry) error {
			if entries++; entries > limits.Entries {
				return v1.Errorf(v1.SizeLimit, "Folder has more than %d files to compare with denied_files: change them one by one", limits.Entries)
			}
			return visit(e)
		}}
	return w.Enter(e, 1)
}
