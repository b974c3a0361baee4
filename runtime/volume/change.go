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

// on opens a volume, runs one operation on it, and turns its error into the
// refusal of p.
func (f Files) on(ctx context.Context, id, p string, do func(*tree) error) error {
	t, err := f.m.open(ctx, id)
	if err != nil {
		return err
	}
	defer t.close()
	err = refuse(p, do(t))
	if errors.Is(err, v1.ErrDiskFull) && f.m.images.holds(id) {
		return v1.ErrSizeLimit // its own disk is full, not the host's
	}
	return err
}

// Mkdir makes the folder p and those above it. One that exists is left as it is.
func (f Files) Mkdir(ctx context.Context, id, p string) error {
	p, err := clean(p)
	if err != nil {
		return err
	}
	return f.on(ctx, id, p, func(t *tree) error {
		dir, err := t.mkdirs(p)
		if errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere
			return exists(p)
		}
		if err == nil {
			dir.close()
		}
		return err
	})
}

// Delete removes p and all that is in it. It is out of sight at once; when ctx
// ends before it is all removed, the next scan does the rest.
func (f Files) Delete(ctx context.Context, id, p string) error {
	p, err := cleanEntry(p)
	if err != nil {
		return err
	}
	return f.on(ctx, id, p, func(t *tree) error { return t.delete(ctx, p) })
}

func (t *tree) delete(ctx context.Context, p string) error {
	dir, err := newFolder(t.Root, path.Dir(p))
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
	defer x.release()
	if err := dir.fd().moveNew(path.Base(p), top.fd(), x.name); err != nil {
		return err
	}
	freed, err := reap(ctx, top.fd(), x.name)
	if err != nil {
		t.used.setSwept(false)
	}
	t.used.release(-freed)
	return errors.Join(err, dir.dir.Sync())
}

// Rename moves src to dst, where nothing may stand; folders above dst are made.
func (f Files) Rename(ctx context.Context, id, src, dst string) error {
	src, err := cleanEntry(src)
	if err != nil {
		return err
	}
	dst, err = cleanEntry(dst)
	if err != nil {
		return err
	}
	return f.on(ctx, id, dst, func(t *tree) error { return t.rename(src, dst) })
}

func (t *tree) rename(src, dst string) error {
	info, err := t.Lstat(src)
	if err != nil {
		return refuse(src, err)
	}
	if err := notIntoItself(info, src, dst, "move"); err != nil {
		return err
	}
	from, err := newFolder(t.Root, path.Dir(src))
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
	if errors.Is(err, syscall.EINVAL) { // a link led into src
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

// Chmod sets the permission bits of p, 0 to 0777. It follows no link: a link
// has no mode of its own and is refused.
func (f Files) Chmod(ctx context.Context, id, p string, mode fs.FileMode) error {
	p, err := cleanEntry(p)
	if err != nil {
		return err
	}
	if mode != mode.Perm() {
		return v1.Errorf(v1.InvalidRequest, "mode: must be between 0 and 0777")
	}
	return f.on(ctx, id, p, func(t *tree) error {
		dir, err := newFolder(t.Root, path.Dir(p))
		if err != nil {
			return err
		}
		defer dir.close()
		return chmod(dir.Root, path.Base(p), mode)
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
