package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// Copy copies a file or a folder to dst, which must not exist. It creates dst's
// parents. The copy gets its name when it is complete. Modes, times and links are
// kept; sockets, FIFOs and devices are skipped. As with Decompress, the contents of
// a folder's copy are durable once the kernel has written them.
func (m *Manager) Copy(ctx context.Context, id, src, dst string) error {
	src, err := parse(src)
	if err != nil {
		return err
	}
	dst, err = parseEntry(dst)
	if err != nil {
		return err
	}
	return m.change(ctx, id, dst, func(vol *Volume) error { return vol.copy(src, dst) })
}

func (vol *Volume) copy(src, dst string) error {
	src, err := vol.follow(src)
	if err != nil {
		return refuse(src, err)
	}
	up, base := split(src)
	in, err := vol.root.OpenFolder(up)
	if err != nil {
		return refuse(src, err)
	}
	defer in.Close()
	e, err := fsys.Lookup(in, up, base)
	if err != nil {
		return refuse(src, err)
	}
	if err := notIntoItself(e.Info, src, dst, "copy"); err != nil {
		return err
	}
	if _, err := vol.root.Lstat(dst); err == nil {
		return exists(dst)
	}
	if err := vol.allowCopy(in, base, dst); err != nil {
		return err
	}
	x, err := vol.newTempFor(path.Dir(dst))
	if err != nil {
		return err
	}
	defer x.close()
	c := copier{temp: x, to: x.in}
	switch e.Info.Mode().Type() {
	case fs.ModeDir:
		err = c.tree(e)
	case 0, fs.ModeSymlink:
		x.durable = true
		err = c.add(e, x.name)
	default:
		return notAFile(src)
	}
	if err != nil {
		return refuse(src, err)
	}
	return x.publish(dst)
}

// allowCopy refuses a copy of the entry base to dst if something of it is denied here or there.
func (vol *Volume) allowCopy(in *fsys.Folder, base, dst string) error {
	if vol.denied == nil {
		return nil
	}
	dir, err := vol.pathOf(in.File)
	if err != nil {
		return err
	}
	dest, err := vol.placeOf(dst)
	if err != nil {
		return err
	}
	return vol.allowBelow(in, base, []string{path.Join(dir, base), dest})
}

// copier copies a tree to a temporary entry.
type copier struct {
	*temp
	to      *fsys.Folder // the folder that is copied to
	entries int
}

// tree copies the folder e, and what is in it, to the temporary entry.
func (c *copier) tree(e fsys.Entry) error {
	from, err := e.In.Enter(e.Name, e.Info)
	if err != nil {
		return err
	}
	defer from.Close()
	w := fsys.Walker{Check: c.vol.ctxErr, Depth: c.vol.m.opt.Limits.Depth,
		Visit:  func(e fsys.Entry) error { return ignoreChanged(c.add(e, e.Name)) },
		Within: func(e fsys.Entry, entries func() error) error { return c.folder(e, e.Name, entries) },
		Failed: func(path string, err error) error { return ignoreChanged(changed(c.vol.failedWalk(path, err))) }}
	return c.folder(e, c.name, func() error { return w.Walk(from, e.Path(), 0) })
}

// folder copies the folder e to the entry as of the current folder. entries copies what is in it.
func (c *copier) folder(e fsys.Entry, as string, entries func() error) error {
	up := c.to
	made, err := c.newFolder(up, as)
	if err != nil {
		return err
	}
	defer made.Close()
	c.to = made
	err = entries()
	c.to = up
	if err != nil {
		return err
	}
	return attributes{c.owner, e.Info.Mode().Perm(), e.Info.ModTime()}.finishFolder(made)
}

// add copies one entry, except a folder, to the entry as of the current folder.
func (c *copier) add(it fsys.Entry, as string) error {
	limits := c.vol.m.opt.Limits
	if c.entries++; c.entries > limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Too many files: a copy may have at most %d", limits.Entries)
	}
	switch it.Info.Mode().Type() {
	case fs.ModeSymlink:
		return c.link(it, as)
	case 0:
		return c.file(it, as)
	}
	return nil
}

// link copies a link unchanged. It skips one that leads out of the volume.
func (c *copier) link(it fsys.Entry, as string) error {
	target, err := it.In.Readlink(it.Name)
	if err != nil {
		return changed(err)
	}
	if !inside(path.Clean(it.Path()), target) {
		return nil
	}
	return c.newLink(c.to, as, target, c.owner)
}

func (c *copier) file(it fsys.Entry, as string) error {
	src, err := fsys.OpenRegular(it.In.Root, it.Name, os.O_RDONLY)
	if err != nil {
		return changed(err)
	}
	defer src.Close()
	return c.newFile(c.to, as, attributes{c.owner, it.Info.Mode().Perm(), it.Info.ModTime()}, func(dst *os.File) error {
		size, before := it.Info.Size(), c.Bytes()
		err := fsys.EachExtent(src, size, func(off, n int64) error { return c.part(src, dst, off, n) })
		if err == nil && c.Bytes() == before { // no data, but an inode
			err = c.Grow(blockBytes)
		}
		if err != nil {
			return err
		}
		return dst.Truncate(size)
	})
}

// part copies n bytes at off, in the kernel if possible.
func (c *copier) part(src, dst *os.File, off, n int64) error {
	if err := errors.Join(c.vol.ctxErr(), c.Grow(roundUp(n))); err != nil {
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
