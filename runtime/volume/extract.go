package volume

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	v1 "berth/api/v1"
	"berth/runtime/volume/archive"
)

// extractor creates the entries of an archive in a temporary folder. It is an
// archive.Destination.
type extractor struct {
	vol         *openVolume
	reservation *reservation
	dest        string // final folder, from the volume's root
	stage       *folder
	owner       owner       // of the entries of stage
	there       *os.Root    // the folder dest; nil: it is missing
	at          []extracted // the folders from the temporary one to that of the current entry
	entered     int         // folders, again and again
}

// extracted is a folder that was created, and is still open.
type extracted struct {
	*folder
	name  string
	mode  fs.FileMode
	time  time.Time
	owner owner
	there *os.Root // the volume's folder of this path, to which the entries are moved; nil: it has none
}

// in returns the folder of the current entry.
func (u *extractor) in() *folder {
	if len(u.at) == 0 {
		return u.stage
	}
	return u.at[len(u.at)-1].folder
}

// own returns the owner of new entries of the current folder.
func (u *extractor) own() owner {
	if len(u.at) == 0 {
		return u.owner
	}
	return u.at[len(u.at)-1].owner
}

// counterpart opens the volume's folder to which the entries of the folder name are moved, and
// describes it. It returns nil if the volume has none.
func (u *extractor) counterpart(name string) (*os.Root, fs.FileInfo) {
	up := u.there
	if len(u.at) > 0 {
		up = u.at[len(u.at)-1].there
	}
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
		return u.folder(e)
	}
	if e.Name == root {
		return v1.ErrInvalidPath
	}
	if err := u.enter(path.Dir(e.Name)); err != nil {
		return err
	}
	in, base := u.in(), path.Base(e.Name)
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
func removeEarlier(in *folder, base, name string) error {
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

func (u *extractor) folder(e archive.Entry) error {
	if e.Name == root {
		return nil
	}
	if err := u.enter(e.Name); err != nil {
		return err
	}
	last := &u.at[len(u.at)-1]
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
	for same < len(parts) && same < len(u.at) && u.at[same].name == parts[same] {
		same++
	}
	if err := u.leave(same); err != nil {
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
	info, err := u.in().Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := errors.Join(u.reservation.Grow(blockBytes), u.in().Mkdir(name, 0o700)); err != nil {
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
	f, err := openFolder(u.in().Root, name)
	if err != nil {
		return err
	}
	o := u.own()
	there, found := u.counterpart(name)
	if there != nil {
		o = ownerOf(found)
	}
	u.at = append(u.at, extracted{f, name, mode, changed, o, there})
	return nil
}

// leave leaves folders until the depth is n.
func (u *extractor) leave(n int) (err error) {
	for len(u.at) > n {
		last := u.at[len(u.at)-1]
		u.at = u.at[:len(u.at)-1]
		if err == nil {
			err = last.owner.finishFolder(last.folder, u.in(), last.name, last.mode, last.time)
		}
		last.close()
		if last.there != nil {
			last.there.Close()
		}
	}
	return err
}

// link creates a symbolic link if it stays in the volume at its final place. It skips an absolute
// one, which leads out of the container's home.
func (u *extractor) link(in *folder, base string, e archive.Entry) error {
	if strings.HasPrefix(e.Target, "/") {
		return &archive.Skip{Reason: v1.SkippedLink}
	}
	if !inside(path.Join(u.dest, e.Name), e.Target) || strings.ContainsRune(e.Target, 0) || len(e.Target) > v1.MaxPath {
		return v1.ErrInvalidPath
	}
	if err := u.reservation.Grow(blockBytes); err != nil {
		return err
	}
	if err := in.Symlink(e.Target, base); err != nil {
		return err
	}
	return u.own().finishLink(in, base)
}

// hardLink links to a file that was extracted before, and to nothing else. It skips a link to a
// symbolic link.
func (u *extractor) hardLink(in *folder, base string, e archive.Entry) error {
	dir, first := split(e.Target)
	from, err := openFolder(u.stage.Root, dir)
	if err == nil {
		defer from.close()
		var info fs.FileInfo
		if info, err = from.Lstat(first); err == nil && info.Mode().IsRegular() {
			return from.link(first, in, base)
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return &archive.Skip{Reason: v1.SkippedLink}
		}
	}
	if err == nil || escapes(err) || is(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.EINVAL) {
		return invalidArchive("Archive has a hard link to a file that it does not contain: %q", e.Target)
	}
	return err
}

// file extracts a regular file. It keeps the permission bits only, without set-uid,
// set-gid and sticky.
func (u *extractor) file(in *folder, base string, e archive.Entry) error {
	f, err := in.create(base)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := u.copyContent(f, e.Content)
	if err == nil && size == 0 {
		err = u.reservation.Grow(blockBytes)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(u.own().finish(f, e.Mode.Perm()), f.Close()); err != nil {
		return err
	}
	if e.Time.IsZero() {
		return nil
	}
	return in.setTime(base, e.Time)
}

// copyContent writes content to f, reserves each piece before it is written, and
// returns how many bytes it wrote. Blocks of zeros become holes.
func (u *extractor) copyContent(f *os.File, content io.Reader) (size int64, err error) {
	buf := u.vol.m.bufs.Get().(*[]byte)
	defer u.vol.m.bufs.Put(buf)
	var hole bool
	for {
		n, end := fillBuffer(u.vol, content, *buf)
		if end != nil && !errors.Is(end, io.EOF) {
			return size, end
		}
		if err := errors.Join(u.vol.ctxErr(), u.reservation.Grow(roundUp(int64(n)))); err != nil {
			return size, err
		}
		if n > 0 { // readers may return io.EOF after their last piece, which may have been a hole
			if hole, err = writeSparse(f, (*buf)[:n], size); err != nil {
				return size, err
			}
		}
		size += int64(n)
		if end == nil {
			continue
		}
		if hole {
			return size, f.Truncate(size)
		}
		return size, nil
	}
}

// writeSparse writes p at off without whole blocks of zeros. hole reports whether p
// ended with such a block.
func writeSparse(f *os.File, p []byte, off int64) (hole bool, err error) {
	var zeros [blockBytes]byte
	begin := 0
	for at := 0; at+blockBytes <= len(p); at += blockBytes {
		if p[at] != 0 || !bytes.Equal(p[at:at+blockBytes], zeros[:]) {
			hole = false
			continue
		}
		if err := writeAt(f, p[begin:at], off+int64(begin)); err != nil {
			return false, err
		}
		begin, hole = at+blockBytes, true
	}
	if begin < len(p) {
		hole = false
	}
	return hole, writeAt(f, p[begin:], off+int64(begin))
}

func writeAt(f *os.File, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	_, err := f.WriteAt(p, off)
	return err
}
