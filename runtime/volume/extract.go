package volume

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
	"berth/runtime/volume/fsys"
)

// Decompress extracts the archive at path into the folder dest, which it creates if it is
// missing. It detects the format by content. It extracts into a temporary folder
// first, so an archive with one invalid entry leaves nothing, and then moves the
// entries to dest: files replace files and folders are merged. If a file conflicts
// with a folder, nothing is moved. If a move fails, what was moved before stays. On return the
// names are durable, but the contents only once the kernel has written them: an fsync of each file
// would take longer than everything else, and the archive still exists. Unusual entries are left
// out and listed.
func (m *Manager) Decompress(ctx context.Context, id string, d v1.Decompression) (got v1.Extraction, err error) {
	if d.Archive, err = parseEntry(d.Archive); err != nil {
		return got, err
	}
	if d.Destination, err = parse(d.Destination); err != nil {
		return got, err
	}
	err = m.change(ctx, id, d.Destination, func(vol *Volume) error {
		f, err := vol.openFile(d.Archive, os.O_RDONLY)
		if err != nil {
			return refuseRead(d.Archive, err)
		}
		defer f.Close()
		return vol.extractInto(d.Destination, func(u *extractor) error {
			info, err := f.Stat()
			if err != nil {
				return err
			}
			got, err = archive.Extract(ctx, f, info.Size(), archive.Options{Limits: archiveLimits(m), Name: d.Archive, Encoding: d.Encoding}, u)
			return err
		})
	})
	return got, err
}

// Extract is Decompress for an archive that arrives: it reads src once, to its end, and keeps only a zip, in
// the volume's limit, until it returns. On return the contents are durable as well.
func (m *Manager) Extract(ctx context.Context, id string, src io.Reader, d v1.Decompression) (got v1.Extraction, err error) {
	if d.Destination, err = parse(d.Destination); err != nil {
		return got, err
	}
	err = m.change(ctx, id, d.Destination, func(vol *Volume) error {
		return vol.extractInto(d.Destination, func(u *extractor) error {
			x, err := vol.newTempFor(root)
			if err != nil {
				return err
			}
			kept := &spool{temp: x}
			defer kept.close()
			opt := archive.Options{Limits: archiveLimits(m), Format: d.Format, Encoding: d.Encoding, Spool: kept.keep}
			if got, err = archive.ExtractStream(ctx, operationReader{src, vol}, opt, u); err != nil {
				return err
			}
			return os.NewSyscallError("syncfs", unix.Syncfs(int(u.in.File.Fd())))
		})
	})
	return got, err
}

// spool is a temporary file that keeps an archive which arrives.
type spool struct {
	*temp
	file *os.File // nil until keep
}

// keep writes content to the file, and returns it and its size.
func (s *spool) keep(content io.Reader) (whole io.ReaderAt, size int64, err error) {
	if s.file, err = s.in.CreateNew(s.name); err != nil {
		return nil, 0, err
	}
	if err := s.writeContent(s.file, content, false); err != nil {
		return nil, 0, err
	}
	info, err := s.file.Stat()
	if err != nil {
		return nil, 0, err
	}
	return s.file, info.Size(), nil
}

func (s *spool) close() {
	s.file.Close()
	s.temp.close()
}

// extractInto calls extract with an extractor into a temporary folder, and moves what it created
// to dest.
func (vol *Volume) extractInto(dest string, extract func(*extractor) error) error {
	if info, err := vol.root.Stat(dest); err == nil && !info.IsDir() {
		return exists(dest)
	}
	x, err := vol.newTempFor(dest)
	if err != nil {
		return err
	}
	moved := false
	defer func() {
		freed := x.close() // folders that dest has as well
		if moved {
			vol.quota.Add(-freed)
		}
	}()
	if err := x.Grow(blockBytes); err != nil {
		return err
	}
	stage, err := x.mkdir()
	if err != nil {
		return err
	}
	defer stage.Close()
	top := extracted{Folder: stage, attributes: attributes{owner: x.owner}}
	if top.there, err = vol.root.OpenRoot(dest + "/."); err == nil { // otherwise it is missing
		defer top.there.Close()
	}
	u := &extractor{temp: x, dest: dest, at: []extracted{top}}
	if u.place, err = vol.placeOf(dest); err != nil {
		return err
	}
	err = extract(u)
	if err := errors.Join(err, u.leave(1)); err != nil {
		return err
	}
	g, err := commitInto(vol, x, stage, dest)
	if g.moved { // also if it failed later: close subtracts what was not moved
		moved = true
		x.Commit(x.Bytes() - g.freed)
	}
	return err
}

// extractor creates the entries of an archive in a temporary folder. It is an
// archive.Destination.
type extractor struct {
	*temp
	dest    string      // final folder, from the volume's root
	place   string      // dest without links
	at      []extracted // the folders from the temporary one to that of the current entry
	entered int         // folders, again and again
}

// extracted is a folder that was created, and is still open.
type extracted struct {
	*fsys.Folder
	name string
	attributes
	there *os.Root // the volume's folder of this path, to which the entries are moved; nil: it has none
}

// last returns the folder of the current entry.
func (u *extractor) last() *extracted { return &u.at[len(u.at)-1] }

// counterpart opens the volume's folder to which the entries of the folder name are moved, and
// describes it. It returns nil if the volume has none.
func (u *extractor) counterpart(name string) (*os.Root, fs.FileInfo) {
	up := u.last().there
	if up == nil {
		return nil, nil
	}
	info, err := up.Lstat(name)
	if err != nil || !info.IsDir() {
		return nil, nil
	}
	there, err := up.OpenRoot(name + "/.")
	if err != nil { // it was replaced
		return nil, nil
	}
	return there, info
}

// Add creates one entry.
func (u *extractor) Add(e archive.Entry) error {
	if p := path.Join(u.place, e.Name); u.vol.denied.match(p, e.Mode) {
		return deniedFile(p)
	}
	if e.Mode.IsDir() {
		return u.addFolder(e)
	}
	if e.Name == root {
		return v1.ErrInvalidPath
	}
	if err := u.enter(path.Dir(e.Name)); err != nil {
		return err
	}
	in, base := u.last().Folder, path.Base(e.Name)
	if err := removeEarlier(in, base, e.Name); err != nil {
		return err
	}
	switch {
	case e.HardLink:
		return u.hardLink(in, base, e)
	case e.Mode&fs.ModeSymlink != 0:
		return u.link(in, base, e)
	}
	return u.file(in, base, e)
}

// removeEarlier removes an earlier entry of the same name: the last one wins.
func removeEarlier(in *fsys.Folder, base, name string) error {
	info, err := in.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return folderAndFile(name)
	}
	return in.Remove(base)
}

func folderAndFile(name string) error {
	return invalidArchive("Archive has a folder and a file with the same name: %q", name)
}

func (u *extractor) addFolder(e archive.Entry) error {
	if e.Name == root {
		return nil
	}
	if err := u.enter(e.Name); err != nil {
		return err
	}
	last := u.last()
	last.mode, last.changed = e.Mode.Perm(), e.Time
	return nil
}

// enter goes to the folder dir from the previous one, because most archives list
// a tree in order. It creates missing folders and never follows links, so that
// nothing is written through a link of the archive.
func (u *extractor) enter(dir string) error {
	var parts []string
	if dir != root {
		parts = strings.Split(dir, "/")
	}
	same := 0
	for same < len(parts) && same+1 < len(u.at) && u.at[same+1].name == parts[same] {
		same++
	}
	if err := u.leave(same + 1); err != nil {
		return err
	}
	for i := same; i < len(parts); i++ {
		if err := u.down(parts[i], strings.Join(parts[:i+1], "/")); err != nil {
			return err
		}
	}
	return nil
}

// down enters the folder name and creates it if it is missing.
func (u *extractor) down(name, full string) error {
	if u.entered++; u.entered > u.vol.m.opt.Limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Archive enters folders more than %d times: sort its entries by folder", u.vol.m.opt.Limits.Entries)
	}
	mode, changed := fs.FileMode(0o755), time.Time{} // independent of the daemon's umask
	in := u.last()
	var f *fsys.Folder
	info, err := in.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err = u.newFolder(in.Folder, name)
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return v1.ErrInvalidPath
	case !info.IsDir():
		return folderAndFile(full)
	default:
		mode, changed = info.Mode().Perm(), info.ModTime()
		f, err = in.OpenFolder(name)
	}
	if err != nil {
		return err
	}
	o := in.owner
	there, found := u.counterpart(name)
	if there != nil {
		o = ownerOf(found)
	}
	u.at = append(u.at, extracted{f, name, attributes{o, mode, changed}, there})
	return nil
}

// leave leaves folders until n are open.
func (u *extractor) leave(n int) (err error) {
	for len(u.at) > n {
		last := u.last()
		u.at = u.at[:len(u.at)-1]
		if err == nil {
			err = last.finishFolder(last.Folder)
		}
		last.Close()
		if last.there != nil {
			last.there.Close()
		}
	}
	return err
}

// link creates a symbolic link if it stays in the volume at its final place, and skips it otherwise. An
// absolute one leads out of the container's home.
func (u *extractor) link(in *fsys.Folder, base string, e archive.Entry) error {
	if !inside(path.Join(u.dest, e.Name), e.Target) || strings.ContainsRune(e.Target, 0) || len(e.Target) > v1.MaxPath {
		return archive.ErrSkippedLink
	}
	return u.newLink(in, base, e.Target, u.last().owner)
}

// hardLink links to a file that was extracted before, and to nothing else. It skips a link to a
// symbolic link.
func (u *extractor) hardLink(in *fsys.Folder, base string, e archive.Entry) error {
	dir, first := split(e.Target)
	from, err := u.at[0].OpenFolder(dir)
	if err == nil {
		defer from.Close()
		var info fs.FileInfo
		if info, err = from.Lstat(first); err == nil && info.Mode().IsRegular() {
			return from.LinkTo(first, in, base)
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return archive.ErrSkippedLink
		}
	}
	if err == nil || fsys.Escapes(err) || fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.EINVAL) {
		return archive.ErrNoTarget
	}
	return err
}

// file extracts a regular file. It keeps the permission bits only, without set-uid,
// set-gid and sticky.
func (u *extractor) file(in *fsys.Folder, base string, e archive.Entry) error {
	a := attributes{u.last().owner, e.Mode.Perm(), e.Time}
	return u.newFile(in, base, a, func(f *os.File) error { return u.writeContent(f, e.Content, true) })
}

// commitInto moves the extracted files from the temporary folder stage, the entry x, to dest.
func commitInto(vol *Volume, x *temp, stage *fsys.Folder, dest string) (g merge, err error) {
	g.vol = vol
	if _, err := vol.root.Stat(dest); fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		if err := stage.File.Chmod(0o755); err != nil {
			return g, err
		}
		if err := x.publish(dest); !errors.Is(err, fs.ErrExist) {
			return g, err
		}
	}
	to, err := vol.root.OpenFolder(dest)
	if err != nil {
		return g, err
	}
	defer to.Close()
	if err := g.folder(stage, to, dest, false); err != nil {
		return g, err
	}
	return g, g.folder(stage, to, dest, true)
}

// merge moves a tree into another tree.
type merge struct {
	vol   *Volume
	moved bool  // some of it
	freed int64 // bytes on disk of files that were replaced
}

// folder moves every entry of from to the folder to, whose path is up, and makes the names durable. A
// file replaces a file; it returns an error if one would replace a folder, or a folder a file. If move
// is false, it only finds that out.
func (g *merge) folder(from, to *fsys.Folder, up string, move bool) error {
	err := from.Each(func(name string, here fs.FileInfo, err error) error {
		if err := errors.Join(err, g.vol.ctxErr()); err != nil {
			return err
		}
		if move {
			if err := from.RenameNew(name, to, name); !errors.Is(err, fs.ErrExist) {
				g.moved = g.moved || err == nil
				return err
			}
		}
		there, err := to.Lstat(name)
		switch p := path.Join(up, name); {
		case err != nil && move:
			return err
		case err != nil:
			return fsys.IgnoreMissing(err)
		case here.IsDir() != there.IsDir():
			return exists(p)
		case here.IsDir():
			sub, dest, err := enterBoth(from, to, name, here, there)
			if err != nil {
				return err
			}
			defer sub.Close()
			defer dest.Close()
			return g.folder(sub, dest, p, move)
		case !move:
			return nil
		}
		g.vol.replacing.Lock()
		defer g.vol.replacing.Unlock()
		if err := from.RenameTo(name, to, name, 0); err != nil {
			return err
		}
		g.moved, g.freed = true, g.freed+onDisk(there)
		return nil
	})
	if !move {
		return err
	}
	return errors.Join(err, to.Sync())
}

// enterBoth opens the folder name of from and that of to.
func enterBoth(from, to *fsys.Folder, name string, here, there fs.FileInfo) (sub, dest *fsys.Folder, err error) {
	sub, err = from.Enter(name, here)
	if err != nil {
		return nil, nil, err
	}
	dest, err = to.Enter(name, there)
	if err != nil {
		_ = sub.Close()
		return nil, nil, err
	}
	return sub, dest, nil
}
