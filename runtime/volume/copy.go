package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// Copy copies a file or a folder to dst, which must not exist. It creates dst's
// parents. The copy gets its name when it is complete. Modes, times and links are
// kept; sockets, FIFOs and devices are skipped. As with Decompress, the contents of
// a folder's copy are durable once the kernel has written them.
func (f Files) Copy(ctx context.Context, id, src, dst string) error {
	src, err := parse(src)
	if err != nil {
		return err
	}
	dst, err = parseEntry(dst)
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
	up, base := split(src)
	in, err := vol.root.OpenFolder(up)
	if err != nil {
		return refuse(src, err)
	}
	defer in.Close()
	e, err := lookup(in, up+"/", base)
	if err != nil {
		return refuse(src, err)
	}
	if err := notIntoItself(e.info, src, dst, "copy"); err != nil {
		return err
	}
	if _, err := vol.root.Lstat(dst); err == nil {
		return exists(dst)
	}
	x, err := vol.newTempFor(path.Dir(dst))
	if err != nil {
		return err
	}
	defer x.close()
	c := copier{temp: x}
	switch e.info.Mode().Type() {
	case fs.ModeDir:
		c.entries = -1 // it is none of its own
	case 0, fs.ModeSymlink:
		c.single = true
	default:
		return notAFile(src)
	}
	if err := c.add(e, x.in, x.name, 0); err != nil {
		return refuse(src, err)
	}
	return x.publish(dst)
}

// copier copies a tree to a temporary entry.
type copier struct {
	*temp
	single  bool // the source is one file
	entries int
}

// tree copies the folder from, whose path is up and which info describes, to the entry as of to.
func (c *copier) tree(from *fsys.Folder, up string, info fs.FileInfo, to *fsys.Folder, as string, level int) error {
	made, err := c.newFolder(to, as)
	if err != nil {
		return err
	}
	defer made.Close()
	err = from.Each(func(name string, info fs.FileInfo, err error) error {
		if err := errors.Join(c.vol.ctxErr(), err); err != nil {
			return err
		}
		return ignoreChanged(c.add(entry{from, up + "/", name, info}, made, name, level+1))
	})
	if err != nil {
		return err
	}
	return c.owner.finishFolder(made, info.Mode().Perm(), info.ModTime())
}

// finishFolder sets the owner, the mode and the time of the folder f. It comes last because new entries
// change a folder's time.
func (o owner) finishFolder(f *fsys.Folder, mode fs.FileMode, changed time.Time) error {
	return errors.Join(o.finish(f.File, mode), f.Chtimes(root, time.Time{}, changed))
}

// add copies one entry, and what is below it, to the entry as of a folder.
func (c *copier) add(it entry, to *fsys.Folder, as string, level int) error {
	limits := c.vol.m.opt.Limits
	if c.entries++; c.entries > limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Too many files: a copy may have at most %d", limits.Entries)
	}
	switch it.info.Mode().Type() {
	case fs.ModeDir:
		if level >= limits.Depth {
			return tooDeep(limits.Depth)
		}
		from, err := it.in.Enter(it.name, it.info)
		if err != nil {
			return changed(err)
		}
		defer from.Close()
		return c.tree(from, it.path(), it.info, to, as, level)
	case fs.ModeSymlink:
		return c.link(it, to, as)
	case 0:
		return c.file(it, to, as)
	}
	return nil
}

// link copies a link unchanged. It skips one that leads out of the volume.
func (c *copier) link(it entry, to *fsys.Folder, as string) error {
	target, err := it.in.Readlink(it.name)
	if err != nil {
		return changed(err)
	}
	if !inside(path.Clean(it.path()), target) {
		return nil
	}
	return c.newLink(to, as, target, c.owner)
}

func (c *copier) file(it entry, to *fsys.Folder, as string) error {
	src, err := fsys.OpenRegular(it.in.Root, it.name, os.O_RDONLY)
	if err != nil {
		return changed(err)
	}
	defer src.Close()
	dst, err := to.CreateNew(as)
	if err != nil {
		return err
	}
	defer dst.Close()
	size, before := it.info.Size(), c.Bytes()
	err = eachExtent(src, size, func(off, n int64) error { return c.part(src, dst, off, n) })
	if err == nil && c.Bytes() == before { // no data, but an inode
		err = c.Grow(blockBytes)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(dst.Truncate(size), c.owner.finish(dst, it.info.Mode().Perm())); err != nil {
		return err
	}
	if c.single {
		err = dst.Sync()
	}
	if err != nil {
		return err
	}
	return to.SetTime(as, it.info.ModTime())
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
