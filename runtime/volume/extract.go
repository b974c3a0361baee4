package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	v1 "berth/api/v1"
	"berth/runtime/volume/quota"
)

// extractor is one extraction in flight, into a temporary folder.
type extractor struct {
	t           *tree
	src         *source
	reservation *quota.Reservation
	dest        string // final folder, from the volume's root
	stage       *os.Root
	at          *descent // from the temporary folder to the current entry's folder
	entries     int
	bytes       int64
}

// extractedEntry is one entry of an archive of any format.
type extractedEntry struct {
	name    string
	mode    fs.FileMode // type and permissions
	time    time.Time
	size    int64
	target  string // of a link
	hard    bool   // the link is a hard one
	content io.Reader
}

// add extracts one entry.
func (u *extractor) add(e extractedEntry) error {
	limits := u.t.m.opt.Limits
	if u.entries++; u.entries > limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Archive has more than %d entries", limits.Entries)
	}
	if err := u.t.ctxErr(); err != nil {
		return err
	}
	if err := checkName(e.name, limits.Depth); err != nil {
		return err
	}
	e.name = path.Clean(e.name)
	if first, _, _ := strings.Cut(path.Join(u.dest, e.name), "/"); isTemp(first) {
		return v1.ErrInvalidPath
	}
	if e.mode.IsDir() {
		return u.folder(e)
	}
	if e.name == root {
		return v1.ErrInvalidPath
	}
	in, err := u.enter(path.Dir(e.name))
	if err != nil {
		return err
	}
	base := path.Base(e.name)
	if err := removeEarlier(in, base, e.name); err != nil {
		return err
	}
	switch {
	case e.hard:
		return u.hardLink(in, base, e)
	case e.mode&fs.ModeSymlink != 0:
		return u.link(in, base, e)
	}
	return u.file(in, base, e)
}

// checkName refuses names that leave the destination, on Linux or on Windows, where
// a backslash separates components and drives have letters.
func checkName(name string, depth int) error {
	slashed := strings.ReplaceAll(name, `\`, "/")
	drive := len(slashed) > 2 && slashed[1:3] == ":/"
	if name == "" || len(name) > v1.MaxPath || slashed[0] == '/' || drive || strings.ContainsRune(name, 0) {
		return v1.ErrInvalidPath
	}
	levels := 0
	for part := range strings.SplitSeq(slashed, "/") {
		levels++
		if part == ".." || len(part) > v1.MaxComponent {
			return v1.ErrInvalidPath
		}
	}
	if levels > depth {
		return v1.Errorf(v1.SizeLimit, "Archive nests folders more than %d deep", depth)
	}
	return nil
}

// removeEarlier removes an earlier entry of the same name: the last one wins.
func removeEarlier(in *dirfd, base, name string) error {
	info, err := in.lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return invalidArchive("Archive has a folder and a file with the same name: %q", name)
	}
	return in.unlink(base)
}

func (u *extractor) folder(e extractedEntry) error {
	if e.name == root {
		return nil
	}
	if _, err := u.enter(e.name); err != nil {
		return err
	}
	last := u.at.last()
	last.mode, last.time = e.mode, e.time
	return nil
}

// enter goes to the folder dir from the previous one, because most archives list
// a tree in order. It creates missing folders and never follows links, so that
// nothing is written through a link of the archive.
func (u *extractor) enter(dir string) (*dirfd, error) {
	var parts []string
	if dir != root {
		parts = strings.Split(dir, "/")
	}
	same := 0
	for same < len(parts) && same < u.at.depth() && u.at.levels[same+1].name == parts[same] {
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
	return u.at.dir(), nil
}

// down enters the folder name and creates it if it is missing.
func (u *extractor) down(name string, full []string) error {
	mode, changed := fs.FileMode(0o755), time.Time{} // independent of the daemon's umask
	err := u.at.dir().mkdir(name)
	switch {
	case errors.Is(err, fs.ErrExist):
		info, err := u.at.dir().lstat(name)
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
	if err := u.at.enter(name); err != nil {
		return err
	}
	u.at.last().mode, u.at.last().time = mode, changed
	return nil
}

// leave leaves folders until the depth is n.
func (u *extractor) leave(n int) (err error) {
	for u.at.depth() > n && err == nil {
		err = u.t.leave(u.at)
	}
	return err
}

// link creates a symbolic link if it stays in the volume at its final place.
func (u *extractor) link(in *dirfd, base string, e extractedEntry) error {
	if !inside(path.Join(u.dest, e.name), e.target) || strings.ContainsRune(e.target, 0) || len(e.target) > v1.MaxPath {
		return v1.ErrInvalidPath
	}
	if err := u.reservation.Grow(quota.Block); err != nil {
		return err
	}
	if err := in.symlink(e.target, base); err != nil {
		return err
	}
	return u.t.own(in, base)
}

// hardLink links to a file that was extracted before, and to nothing else.
func (u *extractor) hardLink(in *dirfd, base string, e extractedEntry) error {
	if err := checkName(e.target, u.t.m.opt.Limits.Depth); err != nil {
		return err
	}
	dir, first := split(path.Clean(e.target))
	from, err := openDirfd(u.stage, dir)
	if err == nil {
		defer from.close()
		var info fs.FileInfo
		if info, err = from.lstat(first); err == nil && info.Mode().IsRegular() {
			return hardLink(from, first, in, base)
		}
	}
	if err == nil || escapes(err) || is(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.EINVAL) {
		return invalidArchive("Archive has a hard link to a file that it does not contain: %q", e.target)
	}
	return err
}
