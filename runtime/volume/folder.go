package volume

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// folder is an open folder: an os.Root for its entries, and a file for renames that
// replace nothing and for fsync, which os.Root does not offer.
type folder struct {
	root   *os.Root
	dir    *os.File
	shared bool // close does not close the root
}

func newFolder(r *os.Root, p string) (*folder, error) {
	d, err := openFolder(r, p)
	if err != nil {
		return nil, err
	}
	f, err := d.OpenFile(root, dirFlags, 0)
	if err != nil {
		d.Close()
		return nil, err
	}
	return &folder{root: d, dir: f}, nil
}

func (f *folder) close() {
	f.dir.Close()
	if !f.shared {
		f.root.Close()
	}
}

// top opens the root folder of the volume.
func (t *tree) top() (*folder, error) {
	dir, err := t.root.OpenFile(root, dirFlags, 0)
	if err != nil {
		return nil, err
	}
	return &folder{root: t.root, dir: dir, shared: true}, nil
}

// moveTo renames the entry old to the entry name of dst. flags are those of
// renameat2; a file system that does not support them returns EINVAL.
func (d *dirfd) moveTo(old string, dst *dirfd, name string, flags uint) error {
	return dst.at("rename", name, func(to int) error {
		return d.at("rename", old, func(from int) error { return unix.Renameat2(from, old, to, name, flags) })
	})
}

// moveNew is moveTo, but returns EEXIST if name exists in dst.
func (d *dirfd) moveNew(old string, dst *dirfd, name string) error {
	err := d.moveTo(old, dst, name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	if _, err := dst.lstat(name); err == nil {
		return wrap("rename", name, syscall.EEXIST)
	}
	return d.moveTo(old, dst, name, 0)
}

// fd returns the folder as a dirfd that shares its handle.
func (f *folder) fd() *dirfd { return &dirfd{f.dir} }

// syncDir makes the entries of r durable.
func syncDir(r *os.Root) error {
	d, err := r.OpenFile(root, dirFlags, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}
