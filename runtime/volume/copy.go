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
	"berth/runtime/volume/walk"
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
	return f.withVolume(ctx, id, dst, func(vol *openVolume) error { return vol.copy(src, dst) })
}

func (vol *openVolume) copy(src, dst string) error {
	src, err := vol.follow(src)
	if err != nil {
		return refuse(src, err)
	}
	info, err := vol.root.Lstat(src)
	if err != nil {
		return refuse(src, err)
	}
	if err := notIntoItself(info, src, dst, "copy"); err != nil {
		return err
	}
	if _, err := vol.root.Lstat(dst); err == nil {
		return exists(dst)
	}
	x, err := vol.newTemp()
	if err != nil {
		return err
	}
	res := vol.newReservation(0)
	defer func() { x.close(); res.Release() }()
	out, err := walk.NewStack(x.in.dir)
	if err != nil {
		return err
	}
	defer out.Close()
	c := copier{vol: vol, reservation: res, out: out, as: x.name}
	if err := c.run(src, info.IsDir()); err != nil {
		return refuse(src, err)
	}
	return x.publish(dst, res)
}

// copier copies a tree. Its stack of folders in the copy follows the walk through the
// source.
type copier struct {
	vol         *openVolume
	reservation *quota.Reservation
	out         *walk.Stack
	as          string // temporary name of the copy
	src         string // start of the walk, from the volume's root
	single      bool   // the source is one file
	entries     int
}

// run copies src, a path from the volume's root.
func (c *copier) run(src string, folder bool) error {
	if folder {
		in, err := walk.OpenDir(c.vol.root, src)
		if err != nil {
			return err
		}
		defer in.Close()
		c.src = src
		return c.copyTree(in)
	}
	dir, base := split(src)
	in, err := walk.OpenDir(c.vol.root, dir)
	if err != nil {
		return err
	}
	defer in.Close()
	e, err := walk.Lookup(in, "", base)
	if err != nil {
		return err
	}
	if !e.Info.Mode().IsRegular() && e.Info.Mode()&fs.ModeSymlink == 0 {
		return notAFile(src)
	}
	c.src, c.single = dir, true
	return c.visit(e, c.as)
}

// copyTree copies the folder in and everything in it.
func (c *copier) copyTree(in *walk.Dir) error {
	info, err := in.File().Stat()
	if err == nil {
		err = c.folder(c.as, info)
	}
	if err != nil {
		return err
	}
	limit := c.vol.m.opt.Limits.Depth
	w := walk.Walker{CtxErr: c.vol.ctxErr, MaxDepth: limit,
		Visit:   func(it walk.Entry) error { return ignoreChanged(c.visit(it, it.Name)) },
		OnLeave: func(depth int) error { return c.leave(depth + 1) },
		OnTooDeep: func(walk.Entry) error {
			return v1.Errorf(v1.InvalidRequest, "Folders are nested more than %d deep", limit)
		}}
	if err := w.Walk(in, "", 0); err != nil {
		return err
	}
	return c.leave(0)
}

// visit copies one entry under the name as.
func (c *copier) visit(it walk.Entry, as string) error {
	if c.entries++; c.entries > c.vol.m.opt.Limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Too many files: a copy may have at most %d", c.vol.m.opt.Limits.Entries)
	}
	switch it.Info.Mode().Type() {
	case fs.ModeDir:
		return c.folder(as, it.Info)
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
	if err := c.out.Dir().Mkdir(as); err != nil {
		return err
	}
	if err := c.out.Enter(as); err != nil {
		return err
	}
	c.out.Last().Mode, c.out.Last().Time = info.Mode(), info.ModTime()
	return nil
}

// leave leaves folders of the copy until the depth is depth.
func (c *copier) leave(depth int) (err error) {
	for c.out.Depth() > depth && err == nil {
		err = c.vol.leave(c.out)
	}
	return err
}

// leave sets the owner, the mode and the time of the last folder of s, and goes to
// its parent. It comes last because new entries change a folder's time.
func (vol *openVolume) leave(s *walk.Stack) error {
	name, mode, changed := s.Name(s.Depth()), s.Last().Mode, s.Last().Time
	if err := vol.finish(s.Dir().File(), mode.Perm()); err != nil {
		return err
	}
	if err := s.Leave(); err != nil || changed.IsZero() {
		return err
	}
	return s.Dir().Chtimes(name, changed)
}

// link copies a link unchanged. It skips one that leads out of the volume.
func (c *copier) link(it walk.Entry, as string) error {
	target, err := it.Dir.Readlink(it.Name)
	if err != nil {
		return changed(err)
	}
	if !inside(path.Join(c.src, it.Path()), target) {
		return nil
	}
	if err := c.reservation.Grow(quota.Block); err != nil {
		return err
	}
	if err := c.out.Dir().Symlink(target, as); err != nil {
		return err
	}
	return c.vol.own(c.out.Dir(), as)
}

func (c *copier) file(it walk.Entry, as string) error {
	src, err := it.Dir.OpenRegular(it.Name)
	if err != nil {
		return changed(err)
	}
	defer src.Close()
	dst, err := c.out.Dir().Create(as)
	if err != nil {
		return err
	}
	defer dst.Close()
	size, before := it.Info.Size(), c.reservation.Bytes()
	err = eachExtent(src, size, func(off, n int64) error { return c.part(src, dst, off, n) })
	if err == nil && c.reservation.Bytes() == before { // no data, but an inode
		err = c.reservation.Grow(quota.Block)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(dst.Truncate(size), c.vol.finish(dst, it.Info.Mode().Perm())); err != nil {
		return err
	}
	if c.single {
		err = dst.Sync()
	}
	if err != nil {
		return err
	}
	return c.out.Dir().Chtimes(as, it.Info.ModTime())
}

// part copies n bytes at off, in the kernel if possible.
func (c *copier) part(src, dst *os.File, off, n int64) error {
	if err := errors.Join(c.vol.ctxErr(), c.reservation.Grow(quota.RoundUp(n))); err != nil {
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
