package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
	"syscall"

	v1 "berth/api/v1"
)

// tree is one volume, open for one operation.
type tree struct {
	*os.Root
	m    *Manager
	ctx  func() error // the operation's end, as an error
	used *quota

	space *space // that what is made here takes
}

// dirFlags open a folder and nothing else, so that a FIFO cannot block.
const dirFlags = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK

// open opens a volume. A link or a file in the place of its directory is
// v1.ErrNotADirectory, also when it was put there in this moment.
func (m *Manager) open(ctx context.Context, id string) (*tree, error) {
	base, err := m.openBase(id)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	before, err := base.Lstat(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, v1.ErrDirectoryMissing
	case err != nil:
		return nil, err
	case !before.IsDir():
		return nil, v1.ErrNotADirectory
	case m.images.holds(id) && !m.images.mounted(id):
		return nil, v1.ErrDirectoryMissing
	}
	r, err := base.OpenRoot(id) // no tenant is above its volume: nothing but an operator can swap it
	if err != nil {
		return nil, err
	}
	after, err := r.Lstat(root)
	if err != nil || !os.SameFile(before, after) {
		r.Close()
		return nil, v1.ErrNotADirectory
	}
	t := &tree{Root: r, m: m, ctx: ctx.Err, used: m.quota(id)}
	if m.images.holds(id) || m.space.has(after) {
		t.space = m.space
	}
	return t, nil
}

func (t *tree) close() { t.Close() }

// openFolder opens a folder below r. Unlike r.OpenRoot it never opens, and so
// never blocks on, anything else that stands at name.
func openFolder(r *os.Root, name string) (*os.Root, error) { return r.OpenRoot(name + "/.") }

// follow gives the path that content at p has when the links at its end are
// followed, so that the link stays when the content is replaced.
func (t *tree) follow(p string) (string, error) {
	for range 40 {
		info, err := t.Lstat(p)
		if is(err, fs.ErrNotExist, syscall.ENOTDIR) {
			return p, nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return p, nil
		}
		target, err := t.Readlink(p)
		if err != nil {
			return "", err
		}
		if target == "" || target[0] == '/' {
			return "", v1.ErrInvalidPath
		}
		p = path.Dir(p) + "/" + target // not cleaned: the folder may be a link
	}
	return "", syscall.ELOOP
}

// parent opens the folder that name is in, and makes it and those above it
// when they are missing. The folder's handle and the last component of name
// are what is left to work with.
func (t *tree) parent(name string) (*folder, string, error) {
	dir, base := split(name)
	if base == "" || base == "." || base == ".." {
		return nil, "", v1.ErrInvalidPath
	}
	f, err := t.mkdirs(dir)
	return f, base, err
}

// mkdirs opens the folder dir, and makes what is missing of it.
func (t *tree) mkdirs(dir string) (*folder, error) {
	f, err := newFolder(t.Root, dir)
	if !is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		return f, err
	}
	parts := strings.FieldsFunc(dir, func(c rune) bool { return c == '/' })
	there := folders(t.Root, parts)
	if there < len(parts) {
		next := strings.Join(parts[:there+1], "/")
		if info, err := t.Stat(next); err == nil && !info.IsDir() {
			return nil, exists(next)
		}
	}
	f, err = newFolder(t.Root, "./"+strings.Join(parts[:there], "/")) // not cleaned: a folder may be a link
	for _, name := range parts[there:] {
		if err != nil {
			return nil, err
		}
		up := f
		f, err = t.mkdir(up, name)
		up.close()
	}
	return f, err
}

// folders is how many of the first parts of a path are folders. Each look goes
// down from the root, so there are few of them.
func folders(r *os.Root, parts []string) int {
	return sort.Search(len(parts), func(n int) bool {
		info, err := r.Stat(strings.Join(parts[:n+1], "/"))
		return err != nil || !info.IsDir()
	})
}

// mkdir opens the folder name in up. If it is missing it is made with the mode
// and owner of what the API makes, and its name is made durable.
func (t *tree) mkdir(up *folder, name string) (*folder, error) {
	if err := errors.Join(t.ctx(), t.used.fits(blockSize), t.space.take(0, 0)); err != nil {
		return nil, err
	}
	err := up.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return newFolder(up.Root, name)
	}
	if err != nil {
		return nil, err
	}
	t.used.release(blockSize)
	f, err := newFolder(up.Root, name)
	if err != nil {
		return nil, err
	}
	// The mode is set again, whatever the daemon's umask is.
	if err := errors.Join(t.finish(f.dir, 0o755), up.dir.Sync()); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// own gives the entry name of d to the configured owner.
func (t *tree) own(d *dirfd, name string) error {
	uid, gid := t.m.owner()
	if uid < 0 && gid < 0 {
		return nil
	}
	return d.chown(name, uid, gid)
}
