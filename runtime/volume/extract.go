package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

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
func (f Files) Decompress(ctx context.Context, id string, d v1.Decompression) (got v1.Extraction, err error) {
	if d.Archive, err = parseEntry(d.Archive); err != nil {
		return got, err
	}
	if d.Destination, err = parse(d.Destination); err != nil {
		return got, err
	}
	err = f.withVolume(ctx, id, d.Destination, func(vol *openVolume) error {
		f, err := vol.openFile(d.Archive, os.O_RDONLY)
		if err != nil {
			return refuseRead(d.Archive, err)
		}
		defer f.Close()
		if info, err := vol.root.Stat(d.Destination); err == nil && !info.IsDir() {
			return exists(d.Destination)
		}
		return vol.extractInto(d.Destination, func(u *extractor) error {
			info, err := f.Stat()
			if err != nil {
				return err
			}
			got, err = archive.Extract(ctx, f, info.Size(), archive.Options{Limits: archiveLimits(vol.m), Name: d.Archive, Encoding: d.Encoding}, u)
			return err
		})
	})
	return got, err
}

// extractInto calls extract with an extractor into a temporary folder, and moves what it created
// to dest.
func (vol *openVolume) extractInto(dest string, extract func(*extractor) error) error {
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
	top := extracted{Folder: stage, owner: x.owner}
	if top.there, err = vol.root.OpenRoot(dest + "/."); err == nil { // otherwise it is missing
		defer top.there.Close()
	}
	u := &extractor{temp: x, dest: dest, at: []extracted{top}}
	err = extract(u)
	if err := errors.Join(err, u.leave(1)); err != nil {
		return err
	}
	freed, err := commitInto(vol, x, stage, dest)
	if err == nil {
		moved = true
		vol.quota.Add(x.Bytes() - freed)
	}
	return err
}

// extractor creates the entries of an archive in a temporary folder. It is an
// archive.Destination.
type extractor struct {
	*temp
	dest    string      // final folder, from the volume's root
	at      []extracted // the folders from the temporary one to that of the current entry
	entered int         // folders, again and again
}

// extracted is a folder that was created, and is still open.
type extracted struct {
	*fsys.Folder
	name  string
	mode  fs.FileMode
	time  time.Time
	owner owner
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
	last.mode, last.time = e.Mode, e.Time
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
	info, err := in.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := errors.Join(u.Grow(blockBytes), in.Mkdir(name, 0o700)); err != nil {
			return err
		}
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return v1.ErrInvalidPath
	case !info.IsDir():
		return folderAndFile(full)
	default:
		mode, changed = info.Mode(), info.ModTime()
	}
	f, err := in.OpenFolder(name)
	if err != nil {
		return err
	}
	o := in.owner
	there, found := u.counterpart(name)
	if there != nil {
		o = ownerOf(found)
	}
	u.at = append(u.at, extracted{f, name, mode, changed, o, there})
	return nil
}

// leave leaves folders until n are open.
func (u *extractor) leave(n int) (err error) {
	for len(u.at) > n {
		last := u.last()
		u.at = u.at[:len(u.at)-1]
		if err == nil {
			err = last.owner.finishFolder(last.Folder, last.mode.Perm(), last.time)
		}
		last.Close()
		if last.there != nil {
			last.there.Close()
		}
	}
	return err
}

// link creates a symbolic link if it stays in the volume at its final place. It skips an absolute
// one, which leads out of the container's home.
func (u *extractor) link(in *fsys.Folder, base string, e archive.Entry) error {
	if strings.HasPrefix(e.Target, "/") {
		return archive.ErrSkippedLink
	}
	if !inside(path.Join(u.dest, e.Name), e.Target) || strings.ContainsRune(e.Target, 0) || len(e.Target) > v1.MaxPath {
		return v1.ErrInvalidPath
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
		return invalidArchive("Archive has a hard link to a file that it does not contain: %q", e.Target)
	}
	return err
}

// file extracts a regular file. It keeps the permission bits only, without set-uid,
// set-gid and sticky.
func (u *extractor) file(in *fsys.Folder, base string, e archive.Entry) error {
	f, err := in.CreateNew(base)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := u.writeContent(f, e.Content, true); err != nil {
		return err
	}
	if err := errors.Join(u.last().owner.finish(f, e.Mode.Perm()), f.Close()); err != nil {
		return err
	}
	if e.Time.IsZero() {
		return nil
	}
	return in.SetTime(base, e.Time)
}

// commitInto moves the extracted files from the temporary folder stage, the entry x, to dest. It
// returns how many bytes on disk the files had that it replaced.
func commitInto(vol *openVolume, x *temp, stage *fsys.Folder, dest string) (freed int64, err error) {
	if _, err := vol.root.Stat(dest); fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		if err := stage.File.Chmod(0o755); err != nil {
			return 0, err
		}
		if err := x.rename(dest); !errors.Is(err, fs.ErrExist) {
			return 0, err
		}
	}
	to, err := vol.root.OpenFolder(dest)
	if err != nil {
		return 0, err
	}
	defer to.Close()
	g := merge{vol: vol}
	if err := g.folder(stage, to, dest, false); err != nil {
		return 0, err
	}
	err = g.folder(stage, to, dest, true)
	return g.freed, err
}

// merge moves a tree into another tree.
type merge struct {
	vol   *openVolume
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
				return err
			}
		}
		there, err := to.Lstat(name)
		switch p := path.Join(up, name); {
		case err != nil && move:
			return err
		case err != nil:
			return ignoreMissing(err)
		case here.IsDir() != there.IsDir():
			return exists(p)
		case here.IsDir():
			return g.both(from, to, name, here, there, func(from, to *fsys.Folder) error { return g.folder(from, to, p, move) })
		case !move:
			return nil
		}
		if err := from.RenameTo(name, to, name, 0); err != nil {
			return err
		}
		g.freed += onDisk(there)
		return nil
	})
	if !move {
		return err
	}
	return errors.Join(err, to.Sync())
}

// both calls do with the folder name of from and that of to.
func (g *merge) both(from, to *fsys.Folder, name string, here, there fs.FileInfo, do func(from, to *fsys.Folder) error) error {
	sub, err := from.Enter(name, here)
	if err != nil {
		return err
	}
	defer sub.Close()
	dest, err := to.Enter(name, there)
	if err != nil {
		return err
	}
	defer dest.Close()
	return do(sub, dest)
}
