package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	v1 "berth/api/v1"
	"berth/runtime/volume/quota"
)

// Copy copies a file or a folder to dst, which must not exist. It creates dst's
// parents. The copy gets its name when it is complete. Modes, times and links are
// kept; sockets, FIFOs and devices are skipped. As with Decompress, the contents of
// a folder's copy are durable once the kernel has written them.
func (f Files) Copy(ctx context.Context, id, src, dst string) error {
	src, err := clean(src)
	if err != nil {
		return err
	}
	dst, err = cleanEntry(dst)
	if err != nil {
		return err
	}
	return f.withTree(ctx, id, dst, func(t *tree) error { return t.copy(src, dst) })
}

func (t *tree) copy(src, dst string) error {
	src, err := t.follow(src)
	if err != nil {
		return refuse(src, err)
	}
	info, err := t.root.Lstat(src)
	if err != nil {
		return refuse(src, err)
	}
	if err := notIntoItself(info, src, dst, "copy"); err != nil {
		return err
	}
	if _, err := t.root.Lstat(dst); err == nil {
		return exists(dst)
	}
	x := t.newTemp()
	res := t.newReservation(0)
	defer func() { x.remove(); res.Release() }()
	top, err := openDirfd(t.root, root)
	if err != nil {
		return err
	}
	defer top.close()
	out, err := newDescent(top)
	if err != nil {
		return err
	}
	defer out.close()
	c := copier{t: t, reservation: res, out: out, as: x.name}
	if err := c.run(src, info.IsDir()); err != nil {
		return refuse(src, err)
	}
	return x.publish(dst, res)
}

// copier copies a tree. Its descent through the copy follows the walk through the
// source.
type copier struct {
	t           *tree
	reservation *quota.Reservation
	out         *descent
	as          string // temporary name of the copy
	src         string // start of the walk, from the volume's root
	single      bool   // the source is one file
	entries     int
}

// run copies src, a path from the volume's root.
func (c *copier) run(src string, folder bool) error {
	if folder {
		in, err := openDirfd(c.t.root, src)
		if err != nil {
			return err
		}
		defer in.close()
		c.src = src
		return c.copyTree(in)
	}
	dir, base := split(src)
	in, err := openDirfd(c.t.root, dir)
	if err != nil {
		return err
	}
	defer in.close()
	s, err := newDescent(in)
	if err != nil {
		return err
	}
	info, err := in.lstat(base)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
		return notAFile(src)
	}
	c.src, c.single = dir, true
	return c.visit(item{in: in, name: base, info: info, at: s}, c.as)
}

// copyTree copies the folder in and everything in it.
func (c *copier) copyTree(in *dirfd) error {
	info, err := in.file.Stat()
	if err == nil {
		err = c.folder(c.as, info)
	}
	if err != nil {
		return err
	}
	limit := c.t.m.opt.Limits.Depth
	w := walker{ctxErr: c.t.ctxErr, maxDepth: limit,
		skip:    func(_ bool, name string) bool { return isTemp(name) && c.t.m.inUse(name) },
		visit:   func(it item) error { return ignoreChanged(c.visit(it, it.name)) },
		onLeave: func(depth int) error { return c.leave(depth + 1) },
		onTooDeep: func(item) error {
			return v1.Errorf(v1.InvalidRequest, "Folders are nested more than %d deep", limit)
		}}
	if err := w.walk(in, "", 0); err != nil {
		return err
	}
	return c.leave(0)
}

// visit copies one entry under the name as.
func (c *copier) visit(it item, as string) error {
	if c.entries++; c.entries > c.t.m.opt.Limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Too many files: a copy may have at most %d", c.t.m.opt.Limits.Entries)
	}
	switch it.info.Mode().Type() {
	case fs.ModeDir:
		return c.folder(as, it.info)
	case fs.ModeSymlink:
		return c.link(it, as)
	case 0:
		return c.file(it, as)
	}
	return nil
}

// folder creates a folder in the copy and enters it.
func (c *copier) folder(as string, info fs.FileInfo) error {
	if err := c.reservation.Grow(quota.Block); err != nil {
		return err
	}
	if err := c.out.dir().mkdir(as); err != nil {
		return err
	}
	if err := c.out.enter(as); err != nil {
		return err
	}
	c.out.last().mode, c.out.last().time = info.Mode(), info.ModTime()
	return nil
}

// leave leaves folders of the copy until the depth is depth.
func (c *copier) leave(depth int) (err error) {
	for c.out.depth() > depth && err == nil {
		err = c.t.leave(c.out)
	}
	return err
}

// leave sets the owner, the mode and the time of the last folder of s, and goes to
// its parent. It comes last because new entries change a folder's time.
func (t *tree) leave(s *descent) error {
	name, mode, changed := s.last().name, s.last().mode, s.last().time
	if err := t.finish(s.dir().file, mode.Perm()); err != nil {
		return err
	}
	if err := s.leave(); err != nil || changed.IsZero() {
		return err
	}
	return s.dir().chtimes(name, changed)
}

// link copies a link unchanged. It skips one that leads out of the volume.
func (c *copier) link(it item, as string) error {
	target, err := it.in.readlink(it.name)
	if err != nil {
		return changed(err)
	}
	if !inside(path.Join(c.src, it.path()), target) {
		return nil
	}
	if err := c.reservation.Grow(quota.Block); err != nil {
		return err
	}
	if err := c.out.dir().symlink(target, as); err != nil {
		return err
	}
	return c.t.own(c.out.dir(), as)
}

func (c *copier) file(it item, as string) error {
	src, err := it.in.openRegular(it.name)
	if err != nil {
		return changed(err)
	}
	defer src.Close()
	dst, err := c.out.dir().create(as)
	if err != nil {
		return err
	}
	defer dst.Close()
	size, before := it.info.Size(), c.reservation.Bytes()
	err = eachExtent(src, size, func(off, n int64) error { return c.part(src, dst, off, n) })
	if err == nil && c.reservation.Bytes() == before { // no data, but an inode
		err = c.reservation.Grow(quota.Block)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(dst.Truncate(size), c.t.finish(dst, it.info.Mode().Perm())); err != nil {
		return err
	}
	if c.single {
		err = dst.Sync()
	}
	if err != nil {
		return err
	}
	return c.out.dir().chtimes(as, it.info.ModTime())
}

// part copies n bytes at off, in the kernel if possible.
func (c *copier) part(src, dst *os.File, off, n int64) error {
	if err := errors.Join(c.t.ctxErr(), c.reservation.Grow(quota.RoundUp(n))); err != nil {
		return err
	}
	if _, err := src.Seek(off, io.SeekStart); err != nil {
		return err
	}
	if _, err := dst.Seek(off, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyN(dst, src, n)
	if errors.Is(err, io.EOF) { // the source shrank; Truncate fills the copy up
		return nil
	}
	return err
}
