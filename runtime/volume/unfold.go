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
)

// extractor is one extraction under way, into a temporary folder.
type extractor struct {
	t       *tree
	src     *source
	share   *reservation
	dest    string // where it will go, from the volume's root
	stage   *os.Root
	at      *descent // in the temporary folder, to the folder of the entry at hand
	entries int
	bytes   int64
}

// extractedEntry is one entry of an archive, whatever its format.
type extractedEntry struct {
	name    string
	mode    fs.FileMode // type and permissions
	time    time.Time
	size    int64
	target  string // of a link
	hard    bool   // the link is a hard one
	content io.Reader
}

// add makes one entry.
func (u *extractor) add(e extractedEntry) error {
	limits := u.t.m.opt.Limits
	if u.entries++; u.entries > limits.Entries {
		return v1.Errorf(v1.SizeLimit, "Archive has more than %d entries", limits.Entries)
	}
	if err := u.t.ctx(); err != nil {
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
	if err := makeRoom(in, base, e.name); err != nil {
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

// checkName refuses names that leave the destination, on this system or on one
// where a backslash is a slash and drives have letters.
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

// makeRoom removes an earlier entry of the same name: the last one counts.
func makeRoom(in *dirfd, base, name string) error {
	info, err := in.lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return damaged("Archive has a folder and a file of one name: %q", name)
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

// enter opens the folder dir, from the one before: archives are mostly in the
// order of a tree. Folders are made as needed, and links are never followed, so
// nothing is written through a link that the archive has made.
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

// down goes into the folder name, and makes it if need be.
func (u *extractor) down(name string, full []string) error {
	mode, changed := fs.FileMode(0o755), time.Time{} // whatever the daemon's umask is
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
			return damaged("Archive has a folder and a file of one name: %q", strings.Join(full, "/"))
		}
		mode, changed = info.Mode(), info.ModTime()
	case err != nil:
		return err
	default:
		if err := u.share.grow(blockSize); err != nil {
			return err
		}
	}
	if err := u.at.enter(name); err != nil {
		return err
	}
	u.at.last().mode, u.at.last().time = mode, changed
	return nil
}

// leave leaves all folders below the first n.
func (u *extractor) leave(n int) (err error) {
	for u.at.depth() > n && err == nil {
		err = u.t.leave(u.at)
	}
	return err
}

// link makes a symbolic link, if it stays in the volume where it will be.
func (u *extractor) link(in *dirfd, base string, e extractedEntry) error {
	if !inside(path.Join(u.dest, e.name), e.target) || strings.ContainsRune(e.target, 0) || len(e.target) > v1.MaxPath {
		return v1.ErrInvalidPath
	}
	if err := u.share.grow(blockSize); err != nil {
		return err
	}
	if err := in.symlink(e.target, base); err != nil {
		return err
	}
	return u.t.own(in, base)
}

// hardLink links a file that the archive has made before, and nothing else.
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
		return damaged("Archive links to what it does not hold: %q", e.target)
	}
	return err
}
