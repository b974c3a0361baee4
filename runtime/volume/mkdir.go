package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sort"
	"strings"
	"syscall"

	v1 "berth/api/v1"
	"berth/runtime/volume/quota"
)

// Mkdir creates the folder p and its parents. A folder that exists is left unchanged.
func (f Files) Mkdir(ctx context.Context, id, p string) error {
	p, err := clean(p)
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
	f, err := newFolder(vol.root, dir)
	if !is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		return f, err
	}
	parts := strings.FieldsFunc(dir, func(c rune) bool { return c == '/' })
	there := folders(vol.root, parts)
	if there < len(parts) {
		next := strings.Join(parts[:there+1], "/")
		if info, err := vol.root.Stat(next); err == nil && !info.IsDir() {
			return nil, exists(next)
		}
	}
	f, err = newFolder(vol.root, "./"+strings.Join(parts[:there], "/")) // not cleaned: a folder may be a link
	for _, name := range parts[there:] {
		if err != nil {
			return nil, err
		}
		up := f
		f, err = vol.mkdir(up, name)
		up.close()
	}
	return f, err
}

// folders returns how many of the leading parts of a path are folders. It uses a
// binary search because each stat starts at the root.
func folders(r *os.Root, parts []string) int {
	return sort.Search(len(parts), func(n int) bool {
		info, err := r.Stat(strings.Join(parts[:n+1], "/"))
		return err != nil || !info.IsDir()
	})
}

// mkdir opens the folder name in up. If it is missing, mkdir creates it with the
// default mode and the configured owner, and makes its name durable.
func (vol *openVolume) mkdir(up *folder, name string) (*folder, error) {
	if err := errors.Join(vol.ctxErr(), vol.quota.Fits(quota.Block), vol.space.Check()); err != nil {
		return nil, err
	}
	err := up.root.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return newFolder(up.root, name)
	}
	if err != nil {
		return nil, err
	}
	vol.quota.Add(quota.Block)
	f, err := newFolder(up.root, name)
	if err != nil {
		return nil, err
	}
	// Mkdir applied the daemon's umask to the mode: set it again.
	if err := errors.Join(vol.finish(f.dir.File(), 0o755), up.sync()); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}
