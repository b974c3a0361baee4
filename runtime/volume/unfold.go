package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	v1 "berth/api/v1"
)

// unfolding is one extraction under way, into a temporary folder.
type unfolding struct {
	t       *tree
	src     *source
	share   *share
	dest    string // where it will go, from the volume's root
	levels  []level
	entries int
	bytes   int64
}

// level is an open folder on the way to the entry at hand. Its time and mode
// are set when it is left, for what is made in it changes them.
type level struct {
	*os.Root
	name string
	mode fs.FileMode // to be set, if known
	time time.Time
}

// unfolded is one entry of an archive, whatever its format.
type unfolded struct {
	name    string
	mode    fs.FileMode // type and permissions
	time    time.Time
	size    int64
	target  string // of a link
	hard    bool   // the link is a hard one
	content io.Reader
}

// add makes one entry.
func (u *unfolding) add(e unfolded) error {
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
func makeRoom(in *os.Root, base, name string) error {
	info, err := in.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return damaged("Archive has a folder and a file of one name: %q", name)
	}
	return in.Remove(base)
}

func (u *unfolding) folder(e unfolded) error {
	if e.name == root {
		return nil
	}
	if _, err := u.enter(e.name); err != nil {
		return err
	}
	last := &u.levels[len(u.levels)-1]
	last.mode, last.time = e.mode, e.time
	return nil
}

// enter opens the folder dir, from the one before: archives are mostly in the
// order of a tree. Folders are made as needed, and links are never followed, so
// nothing is written through a link that the archive has made.
func (u *unfolding) enter(dir string) (*os.Root, error) {
	var parts []string
	if dir != root {
		parts = strings.Split(dir, "/")
	}
	same := 0
	for same < len(parts) && same+1 < len(u.levels) && u.levels[same+1].name == parts[same] {
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
	return u.levels[len(u.levels)-1].Root, nil
}

// down opens the folder name in the last level, and makes it if need be.
func (u *unfolding) down(name string, full []string) error {
	in := u.levels[len(u.levels)-1].Root
	next := level{name: name}
	err := in.Mkdir(name, 0o755)
	switch {
	case errors.Is(err, fs.ErrExist):
		info, err := in.Lstat(name)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return v1.ErrInvalidPath
		}
		if !info.IsDir() {
			return damaged("Archive has a folder and a file of one name: %q", strings.Join(full, "/"))
		}
		next.time, next.mode = info.ModTime(), info.Mode()
	case err != nil:
		return err
	default:
		if err := errors.Join(u.share.grow(blockSize), u.t.own(in, name)); err != nil {
			return err
		}
		next.mode = 0o755 // whatever the daemon's umask is
	}
	if next.Root, err = openFolder(in, name); err != nil {
		return err
	}
	u.levels = append(u.levels, next)
	return nil
}

// leave closes all levels below the first n, and the temporary folder itself.
func (u *unfolding) leave(n int) (err error) {
	for len(u.levels) > n+1 {
		last := u.levels[len(u.levels)-1]
		u.levels = u.levels[:len(u.levels)-1]
		up := u.levels[len(u.levels)-1].Root
		last.Close()
		err = errors.Join(err, up.Chmod(last.name, last.mode.Perm()))
		if !last.time.IsZero() {
			err = errors.Join(err, up.Chtimes(last.name, last.time, last.time))
		}
	}
	return err
}

// link makes a symbolic link, if it stays in the volume where it will be.
func (u *unfolding) link(in *os.Root, base string, e unfolded) error {
	if !inside(path.Join(u.dest, e.name), e.target) || strings.ContainsRune(e.target, 0) || len(e.target) > v1.MaxPath {
		return v1.ErrInvalidPath
	}
	if err := in.Symlink(e.target, base); err != nil {
		return err
	}
	return u.t.own(in, base)
}

// hardLink links a file that the archive has made before, and nothing else.
func (u *unfolding) hardLink(in *os.Root, base string, e unfolded) error {
	if err := checkName(e.target, u.t.m.opt.Limits.Depth); err != nil {
		return err
	}
	stage, first := u.levels[0].Root, path.Clean(e.target)
	info, err := stage.Lstat(first)
	if err != nil && !escapes(err) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !info.Mode().IsRegular() {
		return damaged("Archive links to what it does not hold: %q", e.target)
	}
	return stage.Link(first, e.name)
}
