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
	"berth/runtime/volume/quota"
	"berth/runtime/volume/walk"
)

// extractor creates the entries of an archive in a temporary folder. It is an
// archive.Destination.
type extractor struct {
	vol         *openVolume
	reservation *quota.Reservation
	dest        string // final folder, from the volume's root
	stage       *os.Root
	at          *walk.Stack // from the temporary folder to the current entry's folder
}

// Add creates one entry.
func (u *extractor) Add(e archive.Entry) error {
	if e.Mode.IsDir() {
		return u.folder(e)
	}
	if e.Name == root {
		return v1.ErrInvalidPath
	}
	in, err := u.enter(path.Dir(e.Name))
	if err != nil {
		return err
	}
	base := path.Base(e.Name)
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
func removeEarlier(in *walk.Dir, base, name string) error {
	info, err := in.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return invalidArchive("Archive has a folder and a file with the same name: %q", name)
	}
	return in.Unlink(base)
}

func (u *extractor) folder(e archive.Entry) error {
	if e.Name == root {
		return nil
	}
	if _, err := u.enter(e.Name); err != nil {
		return err
	}
	last := u.at.Last()
	last.Mode, last.Time = e.Mode, e.Time
	return nil
}

// enter goes to the folder dir from the previous one, because most archives list
// a tree in order. It creates missing folders and never follows links, so that
// nothing is written through a link of the archive.
func (u *extractor) enter(dir string) (*walk.Dir, error) {
	var parts []string
	if dir != root {
		parts = strings.Split(dir, "/")
	}
	same := 0
	for same < len(parts) && same < u.at.Depth() && u.at.Name(same+1) == parts[same] {
		same++
	}
	if err := u.leave(same); err != nil {
		return nil, err
	}
	for i := same; i < len(parts); i++ {
		if err := u.down(parts[i], parts[:i+1]); err != nil {
			return nil, err
		}
	}
	return u.at.Dir(), nil
}

// down enters the folder name and creates it if it is missing.
func (u *extractor) down(name string, full []string) error {
	mode, changed := fs.FileMode(0o755), time.Time{} // independent of the daemon's umask
	err := u.at.Dir().Mkdir(name)
	switch {
	case errors.Is(err, fs.ErrExist):
		info, err := u.at.Dir().Lstat(name)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return v1.ErrInvalidPath
		}
		if !info.IsDir() {
			return invalidArchive("Archive has a folder and a file with the same name: %q", strings.Join(full, "/"))
		}
		mode, changed = info.Mode(), info.ModTime()
	case err != nil:
		return err
	default:
		if err := u.reservation.Grow(quota.Block); err != nil {
			return err
		}
	}
	if err := u.at.Enter(name); err != nil {
		return err
	}
	u.at.Last().Mode, u.at.Last().Time = mode, changed
	return nil
}

// leave leaves folders until the depth is n.
func (u *extractor) leave(n int) (err error) {
	for u.at.Depth() > n && err == nil {
		err = u.vol.leave(u.at)
	}
	return err
}

// link creates a symbolic link if it stays in the volume at its final place. It skips an absolute
// one, which leads out of the container's home.
func (u *extractor) link(in *walk.Dir, base string, e archive.Entry) error {
	if strings.HasPrefix(e.Target, "/") {
		return &archive.Skip{Reason: v1.SkippedLink}
	}
	if !inside(path.Join(u.dest, e.Name), e.Target) || strings.ContainsRune(e.Target, 0) || len(e.Target) > v1.MaxPath {
		return v1.ErrInvalidPath
	}
	if err := u.reservation.Grow(quota.Block); err != nil {
		return err
	}
	if err := in.Symlink(e.Target, base); err != nil {
		return err
	}
	return u.vol.own(in, base)
}

// hardLink links to a file that was extracted before, and to nothing else. It skips a link to a
// symbolic link.
func (u *extractor) hardLink(in *walk.Dir, base string, e archive.Entry) error {
	dir, first := split(e.Target)
	from, err := walk.OpenDir(u.stage, dir)
	if err == nil {
		defer from.Close()
		var info fs.FileInfo
		if info, err = from.Lstat(first); err == nil && info.Mode().IsRegular() {
			return walk.Link(from, first, in, base)
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
func (u *extractor) file(in *walk.Dir, base string, e archive.Entry) error {
	f, err := in.Create(base)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := u.copyContent(f, e.Content)
	if err == nil && size == 0 {
		err = u.reservation.Grow(quota.Block)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(u.vol.finish(f, e.Mode.Perm()), f.Close()); err != nil {
		return err
	}
	if e.Time.IsZero() {
		return nil
	}
	return in.Chtimes(base, e.Time)
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
		if err := errors.Join(u.vol.ctxErr(), u.reservation.Grow(quota.RoundUp(int64(n)))); err != nil {
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
	var zeros [quota.Block]byte
	begin := 0
	for at := 0; at+quota.Block <= len(p); at += quota.Block {
		if p[at] != 0 || !bytes.Equal(p[at:at+quota.Block], zeros[:]) {
			hole = false
			continue
		}
		if err := writeAt(f, p[begin:at], off+int64(begin)); err != nil {
			return false, err
		}
		begin, hole = at+quota.Block, true
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
