package volume

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"sort"
	"strings"
	"syscall"

	v1 "berth/api/v1"
)

// Mkdir creates the folder p and its parents. A folder that exists is left unchanged.
func (f Files) Mkdir(ctx context.Context, id, p string) error {
	p, err := parse(p)
	if err != nil {
		return err
	}
	return f.withVolume(ctx, id, p, func(vol *openVolume) error {
		dir, err := vol.mkdirs(p)
		if errors.Is(err, fs.ErrNotExist) { // a dangling link
			return exists(p)
		}
		if err == nil {
			dir.close()
		}
		return err
	})
}

// parent opens the parent folder of name, and creates it and its parents if they
// are missing. It returns the folder and the last component of name.
func (vol *openVolume) parent(name string) (*folder, string, error) {
	dir, base := split(name)
	if base == "" || base == "." || base == ".." {
		return nil, "", v1.ErrInvalidPath
	}
	f, err := vol.mkdirs(dir)
	return f, base, err
}

// mkdirs opens the folder dir and creates its missing components.
func (vol *openVolume) mkdirs(dir string) (*folder, error) {
	f, err := openFolder(vol.root, dir)
	if dir == root || !is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		return f, err
	}
	at := vol.deepest(dir)
	if f, err = openFolder(vol.root, at); err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(below(dir, at), "/") {
		at = path.Join(at, name)
		made, err := vol.makeIn(f, name, at)
		f.close()
		if err != nil {
			return nil, err
		}
		f = made
	}
	return f, nil
}

// deepest returns the longest beginning of dir that is a folder, if dir itself is none. It searches
// in halves: a walk up from the end would take a time that is quadratic to the depth.
func (vol *openVolume) deepest(dir string) string {
	var ends []int
	for i := range len(dir) {
		if dir[i] == '/' {
			ends = append(ends, i)
		}
	}
	n := sort.Search(len(ends), func(i int) bool {
		info, err := vol.root.Stat(dir[:ends[i]])
		return err != nil || !info.IsDir()
	})
	if n == 0 {
		return root
	}
	return dir[:ends[n-1]]
}

// below returns what follows folder in p, which is below it.
func below(p, folder string) string {
	if folder == root {
		return p
	}
	return p[len(folder)+1:]
}

// makeIn is mkdir of the folder at p, name in parent, within the limits of the volume.
func (vol *openVolume) makeIn(parent *folder, name, p string) (*folder, error) {
	if err := errors.Join(vol.ctxErr(), vol.quota.Fits(blockBytes), vol.space.Check()); err != nil {
		return nil, err
	}
	f, err := vol.mkdir(parent, name)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, exists(p)
	}
	return f, err
}

// mkdir opens the folder name in up. If it is missing, mkdir creates it with the
// default mode and the owner of up, and makes its name durable.
func (vol *openVolume) mkdir(up *folder, name string) (*folder, error) {
	err := up.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return openFolder(up.Root, name)
	}
	if err != nil {
		return nil, err
	}
	vol.quota.Add(blockBytes)
	f, err := openFolder(up.Root, name)
	if err != nil {
		return nil, err
	}
	// Mkdir applied the daemon's umask to the mode: set it again.
	o, err := up.owner()
	if err == nil {
		err = errors.Join(o.finish(f.file, 0o755), up.sync())
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}
