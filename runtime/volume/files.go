package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	v1 "berth/api/v1"
)

// withTree opens a volume, calls do with it, and converts the error to one that
// clients receive about p.
func (f Files) withTree(ctx context.Context, id, p string, do func(*tree) error) error {
	t, err := f.m.open(ctx, id)
	if err != nil {
		return err
	}
	defer t.close()
	err = refuse(p, do(t))
	if errors.Is(err, v1.ErrDiskFull) && f.m.images.Exists(id) {
		return v1.ErrSizeLimit // the volume's own file system is full, not the host's
	}
	return err
}

// Mkdir creates the folder p and its parents. A folder that exists is left unchanged.
func (f Files) Mkdir(ctx context.Context, id, p string) error {
	p, err := clean(p)
	if err != nil {
		return err
	}
	return f.withTree(ctx, id, p, func(t *tree) error {
		dir, err := t.mkdirs(p)
		if errors.Is(err, fs.ErrNotExist) { // a dangling link
			return exists(p)
		}
		if err == nil {
			dir.close()
		}
		return err
	})
}

// Delete removes p and everything in it. p disappears at once; if ctx ends before
// everything is removed, the next scan removes the rest.
func (f Files) Delete(ctx context.Context, id, p string) error {
	p, err := cleanEntry(p)
	if err != nil {
		return err
	}
	return f.withTree(ctx, id, p, func(t *tree) error { return t.delete(ctx, p) })
}

func (t *tree) delete(ctx context.Context, p string) error {
	dir, err := newFolder(t.root, path.Dir(p))
	if err != nil {
		return err
	}
	defer dir.close()
	top, err := t.top()
	if err != nil {
		return err
	}
	defer top.close()
	x := t.newTemp()
	defer x.forget()
	if err := dir.fd().moveNew(path.Base(p), top.fd(), x.name); err != nil {
		return err
	}
	freed, err := removeTree(ctx, top.fd(), x.name)
	if err != nil {
		t.m.sweeps.request(t.id)
	}
	t.quota.Add(-freed)
	return errors.Join(err, dir.dir.Sync())
}

// Rename moves src to dst, which must not exist. It creates dst's parents.
func (f Files) Rename(ctx context.Context, id, src, dst string) error {
	src, err := cleanEntry(src)
	if err != nil {
		return err
	}
	dst, err = cleanEntry(dst)
	if err != nil {
		return err
	}
	return f.withTree(ctx, id, dst, func(t *tree) error { return t.rename(src, dst) })
}

func (t *tree) rename(src, dst string) error {
	info, err := t.root.Lstat(src)
	if err != nil {
		return refuse(src, err)
	}
	if err := notIntoItself(info, src, dst, "move"); err != nil {
		return err
	}
	from, err := newFolder(t.root, path.Dir(src))
	if err != nil {
		return refuse(src, err)
	}
	defer from.close()
	to, base, err := t.parent(dst)
	if err != nil {
		return err
	}
	defer to.close()
	err = from.fd().moveNew(path.Base(src), to.fd(), base)
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(src)
	}
	if errors.Is(err, syscall.EINVAL) { // dst is inside src, through a link
		return intoItself("move")
	}
	if err != nil {
		return err
	}
	return errors.Join(to.dir.Sync(), from.dir.Sync())
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

// Chmod sets the permission bits of p, 0 to 0777. It refuses links, which have no
// mode of their own.
func (f Files) Chmod(ctx context.Context, id, p string, mode fs.FileMode) error {
	p, err := cleanEntry(p)
	if err != nil {
		return err
	}
	if mode != mode.Perm() {
		return v1.Errorf(v1.InvalidRequest, "mode: must be between 0 and 0777")
	}
	return f.withTree(ctx, id, p, func(t *tree) error {
		dir, err := newFolder(t.root, path.Dir(p))
		if err != nil {
			return err
		}
		defer dir.close()
		return chmod(dir.root, path.Base(p), mode)
	})
}

func chmod(dir *os.Root, name string, mode fs.FileMode) error {
	info, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return v1.ErrInvalidPath
	}
	return dir.Chmod(name, mode)
}
