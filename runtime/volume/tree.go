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
	"berth/runtime/volume/quota"
)

// tree is a volume that is open for one operation.
type tree struct {
	root   *os.Root
	m      *Manager
	id     string       // of the volume
	ctxErr func() error // returns the error of the operation's context
	quota  *quota.Quota

	space *quota.Space // of the host; nil if the volume is on another file system than the store
}

// dirFlags open a folder and nothing else, so that a FIFO cannot block open(2).
const dirFlags = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK

// open opens a volume. It returns v1.ErrNotADirectory if a link or a file is in
// place of its directory, even if it was swapped in during the call.
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
	case m.images.Exists(id) && !m.images.Mounted(id):
		return nil, v1.ErrDirectoryMissing
	}
	r, err := base.OpenRoot(id) // only an operator can swap it: tenants cannot write to base
	if err != nil {
		return nil, err
	}
	after, err := r.Lstat(root)
	if err != nil || !os.SameFile(before, after) {
		r.Close()
		return nil, v1.ErrNotADirectory
	}
	t := &tree{root: r, m: m, id: id, ctxErr: ctx.Err, quota: m.quota(id)}
	if m.images.Exists(id) || m.space.Contains(after) {
		t.space = m.space
	}
	return t, nil
}

func (t *tree) close() { t.root.Close() }

// openFolder opens a folder below r. Unlike r.OpenRoot it never opens anything but
// a folder, so a FIFO cannot block it.
func openFolder(r *os.Root, name string) (*os.Root, error) { return r.OpenRoot(name + "/.") }

// follow resolves links at the end of p and returns the path of the content, so
// that replacing the content keeps the link.
func (t *tree) follow(p string) (string, error) {
	for range 40 {
		info, err := t.root.Lstat(p)
		if is(err, fs.ErrNotExist, syscall.ENOTDIR) {
			return p, nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return p, nil
		}
		target, err := t.root.Readlink(p)
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

// parent opens the parent folder of name, and creates it and its parents if they
// are missing. It returns the folder and the last component of name.
func (t *tree) parent(name string) (*folder, string, error) {
	dir, base := split(name)
	if base == "" || base == "." || base == ".." {
		return nil, "", v1.ErrInvalidPath
	}
	f, err := t.mkdirs(dir)
	return f, base, err
}

// mkdirs opens the folder dir and creates its missing components.
func (t *tree) mkdirs(dir string) (*folder, error) {
	f, err := newFolder(t.root, dir)
	if !is(err, fs.ErrNotExist, syscall.ENOTDIR) {
		return f, err
	}
	parts := strings.FieldsFunc(dir, func(c rune) bool { return c == '/' })
	there := folders(t.root, parts)
	if there < len(parts) {
		next := strings.Join(parts[:there+1], "/")
		if info, err := t.root.Stat(next); err == nil && !info.IsDir() {
			return nil, exists(next)
		}
	}
	f, err = newFolder(t.root, "./"+strings.Join(parts[:there], "/")) // not cleaned: a folder may be a link
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

// folders returns how many of the leading parts of a path are folders. It uses a
// binary search because each stat starts at the root.
func folders(r *os.Root, parts []string) int {
	return sort.Search(len(parts), func(n int) bool {
		info, err := r.Stat(strings.Join(parts[:n+1], "/"))
		return err != nil || !info.IsDir()
	})
}

// mkdir opens the folder name in up. If it is missing, mkdir creates it with the
// default mode and the configured owner, and makes its name durable.
func (t *tree) mkdir(up *folder, name string) (*folder, error) {
	if err := errors.Join(t.ctxErr(), t.quota.Fits(quota.Block), t.space.Check()); err != nil {
		return nil, err
	}
	err := up.root.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return newFolder(up.root, name)
	}
	if err != nil {
		return nil, err
	}
	t.quota.Add(quota.Block)
	f, err := newFolder(up.root, name)
	if err != nil {
		return nil, err
	}
	// Mkdir applied the daemon's umask to the mode: set it again.
	if err := errors.Join(t.finish(f.dir, 0o755), up.dir.Sync()); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// own sets the configured owner on the entry name of d.
func (t *tree) own(d *dirfd, name string) error {
	uid, gid := t.m.owner()
	if uid < 0 && gid < 0 {
		return nil
	}
	return d.chown(name, uid, gid)
}
