package walk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotRegular reports that an entry is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// dirFlags open a folder and nothing else, so that a FIFO cannot block open(2).
const dirFlags = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK

// Dir is an open folder, one handle. Its methods take the name of one entry, never
// a path, and follow no link: only the handle decides where they act, whatever a
// tenant renames or swaps above it.
type Dir struct{ file *os.File }

// OpenDir opens the folder p below r. It follows links that stay below r. The
// caller closes the folder.
func OpenDir(r *os.Root, p string) (*Dir, error) {
	f, err := r.OpenFile(p+"/.", dirFlags, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{f}, nil
}

// NewDir returns the folder whose handle is f. Its Close closes f.
func NewDir(f *os.File) *Dir { return &Dir{f} }

// File returns the folder's handle, which the folder goes on owning.
func (d *Dir) File() *os.File { return d.file }

// Close closes the handle.
func (d *Dir) Close() { d.file.Close() }

// at makes one system call relative to the folder. It returns EINVAL if name is not
// a single component.
func (d *Dir) at(op, name string, call func(fd int) error) error {
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		return wrap(op, name, syscall.EINVAL)
	}
	return retry(d, op, name, call)
}

// retry makes one system call with the handle of d, again if a signal interrupts it.
func retry(d *Dir, op, name string, call func(fd int) error) error {
	for {
		err := call(int(d.file.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return wrap(op, name, err)
		}
	}
}

func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}

// Open opens the folder name. It returns ENOTDIR or ELOOP for a link.
func (d *Dir) Open(name string) (*Dir, error) {
	f, err := d.openFile(name, dirFlags, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{f}, nil
}

// up opens the current parent. The caller has to check the parent's identity.
func (d *Dir) up() (*Dir, error) {
	var fd int
	err := retry(d, "open", "..", func(in int) (err error) {
		fd, err = unix.Openat(in, "..", dirFlags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Dir{os.NewFile(uintptr(fd), "..")}, nil
}

func (d *Dir) openFile(name string, flags int, perm uint32) (*os.File, error) {
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

// Create creates the regular file name, which must not exist.
func (d *Dir) Create(name string) (*os.File, error) {
	return d.openFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// OpenRegular opens the regular file name for reading, or returns ErrNotRegular. It
// examines the entry before it opens it, and opens the one that it examined: opening a
// device could act on the host, and opening a FIFO could wait.
func (d *Dir) OpenRegular(name string) (*os.File, error) {
	found, err := d.openFile(name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	info, err := found.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, wrap("open", name, ErrNotRegular)
	}
	var fd int
	err = retry(&Dir{found}, "open", name, func(in int) (err error) {
		fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(in), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Mkdir creates the folder name with mode 0700.
func (d *Dir) Mkdir(name string) error {
	return d.at("mkdir", name, func(fd int) error { return unix.Mkdirat(fd, name, 0o700) })
}

// Mknod creates a FIFO, a socket or a device in d. mode and dev are those of mknod(2); the
// umask does not apply to mode.
func Mknod(d *Dir, name string, mode uint32, dev uint64) error {
	return d.at("mknod", name, func(fd int) error {
		if err := unix.Mknodat(fd, name, mode, int(dev)); err != nil {
			return err
		}
		return unix.Fchmodat(fd, name, mode&0o7777, 0)
	})
}

// Unlink removes an entry that is not a folder.
func (d *Dir) Unlink(name string) error {
	return d.at("unlink", name, func(fd int) error { return unix.Unlinkat(fd, name, 0) })
}

// Rmdir removes an empty folder. It returns ENOTEMPTY for any other.
func (d *Dir) Rmdir(name string) error {
	err := d.at("rmdir", name, func(fd int) error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) })
	if errors.Is(err, syscall.EEXIST) { // some file systems return this
		return wrap("rmdir", name, syscall.ENOTEMPTY)
	}
	return err
}

// Symlink creates the symbolic link name.
func (d *Dir) Symlink(target, name string) error {
	return d.at("symlink", name, func(fd int) error { return unix.Symlinkat(target, fd, name) })
}

// Readlink returns the target of the symbolic link name.
func (d *Dir) Readlink(name string) (target string, err error) {
	buf := make([]byte, unix.PathMax)
	var n int
	err = d.at("readlink", name, func(fd int) (err error) {
		n, err = unix.Readlinkat(fd, name, buf)
		return err
	})
	return string(buf[:max(n, 0)]), err
}

// Chown sets the owner of an entry. An id of -1 changes nothing.
func (d *Dir) Chown(name string, uid, gid int) error {
	return d.at("chown", name, func(fd int) error { return unix.Fchownat(fd, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW) })
}

// Chtimes sets the access and modification time of name.
func (d *Dir) Chtimes(name string, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return wrap("chtimes", name, err)
	}
	return d.at("chtimes", name, func(fd int) error {
		return unix.UtimesNanoAt(fd, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// Link creates the hard link name in d to the entry old of from.
func Link(from *Dir, old string, d *Dir, name string) error {
	return d.at("link", name, func(fd int) error { return unix.Linkat(int(from.file.Fd()), old, fd, name, 0) })
}

// Lstat describes an entry. It does not follow links.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	var st unix.Stat_t
	err := d.at("lstat", name, func(fd int) error { return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return nil, err
	}
	return newFileInfo(name, &st), nil
}

// id returns the folder's identity, which is unique as long as it is open.
func (d *Dir) id() (inode, error) {
	var st unix.Stat_t
	err := retry(d, "stat", d.file.Name(), func(fd int) error { return unix.Fstat(fd, &st) })
	return inode{uint64(st.Dev), st.Ino}, err
}

// Rename renames the entry old to the entry name of dst. flags are those of
// renameat2; a file system that does not support them returns EINVAL.
func (d *Dir) Rename(old string, dst *Dir, name string, flags uint) error {
	return dst.at("rename", name, func(to int) error {
		return d.at("rename", old, func(from int) error { return unix.Renameat2(from, old, to, name, flags) })
	})
}

// RenameNew is Rename, but returns EEXIST if name exists in dst.
func (d *Dir) RenameNew(old string, dst *Dir, name string) error {
	err := d.Rename(old, dst, name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	if _, err := dst.Lstat(name); err == nil {
		return wrap("rename", name, syscall.EEXIST)
	}
	return d.Rename(old, dst, name, 0)
}

// Each calls f for every name in the folder.
func (d *Dir) Each(f func(name string) error) error {
	var names nameReader
	for {
		name, err := names.read(d)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(name)
		}
		if err != nil {
			return err
		}
	}
}
