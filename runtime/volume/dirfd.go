package volume

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dirfd is an open folder, one handle. Its methods take the name of one entry, never
// a path, and follow no link: only the handle decides where they act, whatever a
// tenant renames or swaps above it.
type dirfd struct{ file *os.File }

// openDirfd opens the folder p below r. It follows links that stay below r.
func openDirfd(r *os.Root, p string) (*dirfd, error) {
	f, err := r.OpenFile(p+"/.", dirFlags, 0)
	if err != nil {
		return nil, err
	}
	return &dirfd{f}, nil
}

func (d *dirfd) close() { d.file.Close() }

// at makes one system call relative to the folder. It returns EINVAL if name is not
// a single component.
func (d *dirfd) at(op, name string, call func(fd int) error) error {
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		return wrap(op, name, syscall.EINVAL)
	}
	return d.raw(op, name, call)
}

func (d *dirfd) raw(op, name string, call func(fd int) error) error {
	for {
		err := call(int(d.file.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return wrap(op, name, err)
		}
	}
}

// open opens the folder name. It returns ENOTDIR or ELOOP for a link.
func (d *dirfd) open(name string) (*dirfd, error) {
	f, err := d.openFile(name, dirFlags, 0)
	if err != nil {
		return nil, err
	}
	return &dirfd{f}, nil
}

// up opens the current parent. The caller has to check the parent's identity.
func (d *dirfd) up() (*dirfd, error) {
	var fd int
	err := d.raw("open", "..", func(in int) (err error) {
		fd, err = unix.Openat(in, "..", dirFlags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &dirfd{os.NewFile(uintptr(fd), "..")}, nil
}

func (d *dirfd) openFile(name string, flags int, perm uint32) (*os.File, error) {
	var fd int
	err := d.at("open", name, func(in int) (err error) {
		fd, err = unix.Openat(in, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// create creates the regular file name, which must not exist.
func (d *dirfd) create(name string) (*os.File, error) {
	return d.openFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// openRegular opens the regular file name for reading. O_NONBLOCK keeps open(2)
// from waiting for the other end of a FIFO.
func (d *dirfd) openRegular(name string) (*os.File, error) {
	info, err := d.lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notAFile(name)
	}
	f, err := d.openFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, notAFile(name))
	}
	return f, nil
}

func (d *dirfd) mkdir(name string) error {
	return d.at("mkdir", name, func(fd int) error { return unix.Mkdirat(fd, name, 0o700) })
}

// unlink removes an entry that is not a folder.
func (d *dirfd) unlink(name string) error {
	return d.at("unlink", name, func(fd int) error { return unix.Unlinkat(fd, name, 0) })
}

// rmdir removes an empty folder. It returns ENOTEMPTY for any other.
func (d *dirfd) rmdir(name string) error {
	err := d.at("rmdir", name, func(fd int) error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) })
	if errors.Is(err, syscall.EEXIST) { // some file systems return this
		return wrap("rmdir", name, syscall.ENOTEMPTY)
	}
	return err
}

func (d *dirfd) symlink(target, name string) error {
	return d.at("symlink", name, func(fd int) error { return unix.Symlinkat(target, fd, name) })
}

func (d *dirfd) readlink(name string) (target string, err error) {
	buf := make([]byte, unix.PathMax)
	var n int
	err = d.at("readlink", name, func(fd int) (err error) {
		n, err = unix.Readlinkat(fd, name, buf)
		return err
	})
	return string(buf[:max(n, 0)]), err
}

// chown sets the owner of an entry. An id of -1 changes nothing.
func (d *dirfd) chown(name string, uid, gid int) error {
	return d.at("chown", name, func(fd int) error { return unix.Fchownat(fd, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW) })
}

// chtimes sets the access and modification time of name.
func (d *dirfd) chtimes(name string, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return wrap("chtimes", name, err)
	}
	return d.at("chtimes", name, func(fd int) error {
		return unix.UtimesNanoAt(fd, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// hardLink links the entry old of from as name in d.
func hardLink(from *dirfd, old string, d *dirfd, name string) error {
	return d.at("link", name, func(fd int) error { return unix.Linkat(int(from.file.Fd()), old, fd, name, 0) })
}

// lstat describes an entry. It does not follow links.
func (d *dirfd) lstat(name string) (fs.FileInfo, error) {
	var st unix.Stat_t
	err := d.at("lstat", name, func(fd int) error { return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return nil, err
	}
	return newFileInfo(name, &st), nil
}

// id returns the folder's identity, which is unique as long as it is open.
func (d *dirfd) id() (inode, error) {
	var st unix.Stat_t
	err := d.raw("stat", d.file.Name(), func(fd int) error { return unix.Fstat(fd, &st) })
	return inode{uint64(st.Dev), st.Ino}, err
}
