package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	v1 "berth/api/v1"
)

// Copy copies a file or a folder to dst, where nothing may stand; folders above
// dst are made. The copy appears when it is whole. Modes, times and links are
// kept; sockets, FIFOs and devices are left out. As with Decompress, the content
// of a folder's copy is durable when the kernel has written it.
func (f Files) Copy(ctx context.Context, id, src, dst string) error {
	src, err := clean(src)
	if err != nil {
		return err
	}
	dst, err = cleanEntry(dst)
	if err != nil {
		return err
	}
	return f.on(ctx, id, dst, func(t *tree) error { return t.copy(src, dst) })
}

func (t *tree) copy(src, dst string) error {
	src, err := t.follow(src)
	if err != nil {
		return refuse(src, err)
	}
	info, err := t.Lstat(src)
	if err != nil {
		return refuse(src, err)
	}
	if err := notIntoItself(info, src, dst, "copy"); err != nil {
		return err
	}
	if _, err := t.Lstat(dst); err == nil {
		return exists(dst)
	}
	dir, base := split(src)
	in, err := newFolder(t.Root, dir)
	if err != nil {
		return refuse(src, err)
	}
	defer in.close()
	x := t.newTemp()
	sh := &share{a: t.used}
	defer func() { x.drop(); sh.end() }()
	c := copier{t: t, share: sh, single: !info.IsDir()}
	if err := c.entry(in.Root, base, src, t.Root, x.name, 0); err != nil {
		return refuse(src, err)
	}
	return x.publish(dst, sh)
}

// copier copies entries from one folder to another, both of them handles.
type copier struct {
	t      *tree
	share  *share
	single bool // one file is all there is to copy
}

// entry copies the entry name of in to the name as of out. P is its path from
// the volume's root.
func (c *copier) entry(in *os.Root, name, p string, out *os.Root, as string, level int) error {
	if err := c.t.ctx(); err != nil {
		return err
	}
	info, err := in.Lstat(name)
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return c.folder(in, name, p, out, as, info, level)
	case fs.ModeSymlink:
		return c.link(in, name, p, out, as)
	case 0:
		return c.file(in, name, out, as, info)
	}
	if level == 0 {
		return notAFile(p)
	}
	return nil
}

func (c *copier) folder(in *os.Root, name, p string, out *os.Root, as string, info fs.FileInfo, level int) error {
	if level >= c.t.m.opt.Limits.Depth {
		return v1.Errorf(v1.InvalidRequest, "Folders are nested more than %d deep", level)
	}
	if err := c.share.grow(blockSize); err != nil {
		return err
	}
	if err := out.Mkdir(as, 0o700); err != nil {
		return err
	}
	from, err := openFolder(in, name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := openFolder(out, as)
	if err != nil {
		return err
	}
	defer to.Close()
	err = eachName(from, func(child string) error {
		if isTemp(child) && c.t.m.inUse(child) {
			return nil
		}
		return ignoreMissing(c.entry(from, child, p+"/"+child, to, child, level+1))
	})
	return errors.Join(err, c.t.keep(out, as, info.Mode(), info))
}

// keep gives an entry the mode and time of what it was made from, and its owner.
func (t *tree) keep(r *os.Root, name string, mode fs.FileMode, info fs.FileInfo) error {
	return errors.Join(
		t.own(r, name),
		r.Chmod(name, mode.Perm()),
		r.Chtimes(name, info.ModTime(), info.ModTime()),
	)
}

// link copies a link as it is. One that leads out of the volume is left out.
func (c *copier) link(in *os.Root, name, p string, out *os.Root, as string) error {
	target, err := in.Readlink(name)
	if err != nil {
		return err
	}
	if !inside(p, target) {
		return nil
	}
	if err := out.Symlink(target, as); err != nil {
		return err
	}
	return c.t.own(out, as)
}

func (c *copier) file(in *os.Root, name string, out *os.Root, as string, info fs.FileInfo) error {
	src, err := openRegular(in, name)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := out.OpenFile(as, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer dst.Close()
	err = eachExtent(src, info.Size(), func(off, n int64) error { return c.part(src, dst, off, n) })
	if err != nil {
		return err
	}
	if err := errors.Join(dst.Truncate(info.Size()), c.t.finish(dst, info.Mode().Perm())); err != nil {
		return err
	}
	if c.single {
		err = dst.Sync()
	}
	if err != nil {
		return err
	}
	return out.Chtimes(as, info.ModTime(), info.ModTime())
}

// part copies n bytes at off, in the kernel where it can.
func (c *copier) part(src, dst *os.File, off, n int64) error {
	if err := errors.Join(c.t.ctx(), c.share.grow(roundUp(n))); err != nil {
		return err
	}
	if _, err := src.Seek(off, io.SeekStart); err != nil {
		return err
	}
	if _, err := dst.Seek(off, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyN(dst, src, n)
	if errors.Is(err, io.EOF) { // it shrank; Truncate fills it up
		return nil
	}
	return err
}
