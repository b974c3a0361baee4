package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
	"syscall"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// Mkdir creates the folder p and its parents. A folder that exists is left unchanged.
func (m *Manager) Mkdir(ctx context.Context, id, p string) error {
	p, err := parse(p)
	if err != nil {
		return err
	}
	return m.change(ctx, id, p, func(vol *Volume) error {
		dir, err := vol.mkdirs(p)
		if errors.Is(err, fs.ErrNotExist) { // a dangling link
			return exists(p)
		}
		if err == nil {
			dir.Close()
		}
		return err
	})
}

// parent opens the parent folder of name, and creates it and its parents if they
// are missing. It returns the folder and the last component of name.
func (vol *Volume) parent(name string) (*fsys.Folder, string, error) {
	dir, base := split(name)
	if base == "" || base == "." || base == ".." {
		return nil, "", v1.ErrInvalidPath
	}
	f, err := vol.mkdirs(dir)
	return f, base, err
}

// mkdirs opens the folder dir and creates its missing components.
func (vol *Volume) mkdirs(dir string) (*fsys.Folder, error) {
	f, err := vol.root.OpenFolder(dir)
	if dir == root || !fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		return f, err
	}
	at, rest := vol.deepest(dir)
	if f, err = vol.root.OpenFolder(at); err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(rest, "/") {
		at = path.Join(at, name)
		made, err := vol.makeIn(f, name, at)
		f.Close()
		if err != nil {
			return nil, err
		}
		f = made
	}
	return f, nil
}

// deepest returns the longest beginning of dir that is a folder, if dir itself is none, and the rest. It
// searches in halves: a walk up from the end would take a time that is quadratic to the depth.
func (vol *Volume) deepest(dir string) (at, rest string) {
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
		return root, dir
	}
	return dir[:ends[n-1]], dir[ends[n-1]+1:]
}

// makeIn opens the folder at p, name in up. If it is missing, makeIn creates it, and makes its name
// durable.
func (vol *Volume) makeIn(up *fsys.Folder, name, p string) (*fsys.Folder, error) {
	if err := vol.ctxErr(); err != nil {
		return nil, err
	}
	f, err := vol.mkdir(up, name)
	if errors.Is(err, fs.ErrExist) {
		f, err = up.OpenFolder(name)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, exists(p)
	}
	if err != nil {
		return nil, err
	}
	if err := up.Sync(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// mkdir creates the folder name in up with the default mode and the owner of up, within the limits of
// the volume.
func (vol *Volume) mkdir(up *fsys.Folder, name string) (*fsys.Folder, error) {
	if err := vol.allow(up, name, fs.ModeDir); err != nil {
		return nil, err
	}
	var f *fsys.Folder
	err := vol.withBlock(func() (err error) {
		f, err = up.MakeFolder(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	o, err := newOwner(up)
	if err == nil {
		err = o.finish(f.File, 0o755)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Rename moves src to dst, which must not exist. It creates dst's parents.
func (m *Manager) Rename(ctx context.Context, id, src, dst string) error {
	src, err := parseEntry(src)
	if err != nil {
		return err
	}
	dst, err = parseEntry(dst)
	if err != nil {
		return err
	}
	return m.change(ctx, id, dst, func(vol *Volume) error { return vol.rename(src, dst) })
}

func (vol *Volume) rename(src, dst string) error {
	info, err := vol.root.Lstat(src)
	if err != nil {
		return refuse(src, err)
	}
	if err := notIntoItself(info, src, dst, "move"); err != nil {
		return err
	}
	from, err := vol.root.OpenFolder(path.Dir(src))
	if err != nil {
		return refuse(src, err)
	}
	defer from.Close()
	to, base, err := vol.parent(dst)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := vol.allowTree(from, path.Base(src), to, base); err != nil {
		return err
	}
	err = from.RenameNew(path.Base(src), to, base)
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(src)
	}
	if errors.Is(err, syscall.EINVAL) { // dst is inside src, through a link
		return intoItself("move")
	}
	if err != nil {
		return err
	}
	return errors.Join(to.Sync(), from.Sync())
}

func notIntoItself(info fs.FileInfo, src, dst, verb string) error {
	switch {
	case src == dst:
		return exists(dst)
	case info.IsDir() && within(dst, src):
		return intoItself(verb)
	}
	return nil
}

func intoItself(verb string) error {
	return v1.Errorf(v1.InvalidRequest, "Cannot %s a folder into itself", verb)
}

// Delete removes p and everything in it. p disappears at once; if ctx ends before
// everything is removed, the next scan removes the rest.
//
// Delete fails with the error of check, which is called with the description of the content at p, behind links,
// or nil if a link leads to none. Between that call and the removal nothing but a program in a container
// replaces the content. A nil check allows any.
func (m *Manager) Delete(ctx context.Context, id, p string, check func(content fs.FileInfo) error) error {
	p, err := parseEntry(p)
	if err != nil {
		return err
	}
	return m.changeIn(ctx, id, p, func(vol *Volume, dir *fsys.Folder, base string) error {
		return vol.delete(ctx, dir, base, func() error { return vol.checkContent(p, check) })
	})
}

// checkContent calls check, unless it is nil, with the description of what p leads to.
func (vol *Volume) checkContent(p string, check func(content fs.FileInfo) error) error {
	if check == nil {
		return nil
	}
	name, err := vol.follow(p)
	if err != nil {
		return err
	}
	content, err := vol.root.Lstat(name)
	if fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		return check(nil)
	}
	if err != nil {
		return err
	}
	return check(content)
}

// changeIn is change, and opens the folder of p. base is the name in it.
func (m *Manager) changeIn(ctx context.Context, id, p string, do func(vol *Volume, dir *fsys.Folder, base string) error) error {
	return m.change(ctx, id, p, func(vol *Volume) error {
		dir, err := vol.root.OpenFolder(path.Dir(p))
		if err != nil {
			return err
		}
		defer dir.Close()
		return do(vol, dir, path.Base(p))
	})
}

func (vol *Volume) delete(ctx context.Context, dir *fsys.Folder, base string, check func() error) error {
	if err := vol.allowTree(dir, base, nil, ""); err != nil {
		return err
	}
	in, err := vol.m.openTemps(vol.id)
	if err != nil {
		return err
	}
	defer in.Close()
	gone := randomName(removedPrefix)
	hide := func() error {
		vol.replacing.Lock()
		defer vol.replacing.Unlock()
		if _, err := dir.Lstat(base); err != nil {
			return err
		}
		if err := check(); err != nil {
			return err
		}
		return dir.RenameNew(base, in, gone)
	}
	if err := hide(); err != nil {
		return err
	}
	freed, err := removeTree(ctx, in, gone)
	vol.quota.Add(-freed)
	return errors.Join(err, dir.Sync())
}

// Chmod sets the permission bits of p, 0 to 0777. It refuses links, which have no
// mode of their own.
func (m *Manager) Chmod(ctx context.Context, id, p string, mode fs.FileMode) error {
	p, err := parseEntry(p)
	if err != nil {
		return err
	}
	if mode != mode.Perm() {
		return v1.Errorf(v1.InvalidRequest, "mode: must be between 0 and 0777")
	}
	return m.changeIn(ctx, id, p, func(vol *Volume, dir *fsys.Folder, base string) error {
		info, err := dir.Lstat(base)
		if err == nil {
			err = vol.allow(dir, base, info.Mode())
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return v1.ErrInvalidPath
		}
		return dir.Chmod(base, mode)
	})
}

// owner is the user and the group of an entry. A new entry gets that of its folder, and a file that
// replaces another one that of the other.
type owner struct{ uid, gid int }

func ownerOf(info fs.FileInfo) owner {
	return owner{int(fsys.Stat(info).Uid), int(fsys.Stat(info).Gid)}
}

// newOwner returns the owner of new entries of a folder.
func newOwner(in *fsys.Folder) (owner, error) {
	info, err := in.File.Stat()
	if err != nil {
		return owner{}, err
	}
	return ownerOf(info), nil
}

// ownerIn returns the owner of new entries of the folder dir, which may be missing.
func (vol *Volume) ownerIn(dir string) (owner, error) {
	info, err := vol.root.Stat(dir)
	if err == nil && !info.IsDir() || fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		at, _ := vol.deepest(dir)
		info, err = vol.root.Stat(at)
	}
	if err != nil {
		return owner{}, err
	}
	return ownerOf(info), nil
}

// finish sets the mode and the owner of a new file or folder.
func (o owner) finish(f *os.File, mode fs.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if ownerOf(info) != o {
		if err := ignoreDenied(f.Chown(o.uid, o.gid)); err != nil {
			return err
		}
	}
	if info.Mode()&^fs.ModeType != mode { // the umask has changed it, or the folder's setgid
		err = f.Chmod(mode)
	}
	return err
}

// finishLink sets the owner of the new link name.
func (o owner) finishLink(in *fsys.Folder, name string) error {
	return ignoreDenied(in.Lchown(name, o.uid, o.gid))
}

// ignoreDenied ignores that only root may give a file to another user.
func ignoreDenied(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
