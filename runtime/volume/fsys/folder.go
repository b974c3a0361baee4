package fsys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Folder is an open folder: an os.Root for what is in it, and its handle for what os.Root does not
// offer. The methods of Folder take the name of one entry, and follow no link.
type Folder struct {
	*os.Root
	File *os.File
}

// NewFolder returns the folder of a root that was opened just now, or the error of that.
func NewFolder(r *os.Root, err error) (*Folder, error) {
	if err != nil {
		return nil, err
	}
	file, err := r.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		r.Close()
		return nil, err
	}
	return &Folder{r, file}, nil
}

// OpenFolder opens the folder p below f. It follows links that stay below f. "/." lets it open
// nothing but a folder, so a FIFO cannot block it.
func (f *Folder) OpenFolder(p string) (*Folder, error) { return NewFolder(f.OpenRoot(p + "/.")) }

// MakeFolder creates the folder name with mode 0700, and opens it.
func (f *Folder) MakeFolder(name string) (*Folder, error) {
	if err := f.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	return f.OpenFolder(name)
}

// errReplaced reports that an entry was replaced after it was examined.
var errReplaced = fmt.Errorf("%w: it was replaced", fs.ErrNotExist)

// Enter opens the folder name of r, which info describes. A link in its place might lead to another one.
func Enter(r *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	sub, err := r.OpenRoot(name + "/.")
	if err != nil {
		if Escapes(err) || Is(err, syscall.ENOTDIR, syscall.ELOOP) {
			return nil, errReplaced
		}
		return nil, err
	}
	if found, err := sub.Stat("."); err != nil || !os.SameFile(info, found) {
		sub.Close()
		return nil, errors.Join(errReplaced, err)
	}
	return sub, nil
}

// Enter opens the folder name, which info describes.
func (f *Folder) Enter(name string, info fs.FileInfo) (*Folder, error) {
	return NewFolder(Enter(f.Root, name, info))
}

// Close closes the folder.
func (f *Folder) Close() error { return errors.Join(f.File.Close(), f.Root.Close()) }

// Sync makes the names in the folder durable.
func (f *Folder) Sync() error { return f.File.Sync() }

// NamesAtOnce is how many names of a folder are read at a time.
const NamesAtOnce = 512

// Each calls do for each entry of the folder, in the order of the disk, with its description or the
// reason why there is none. It leaves out entries that are removed meanwhile.
func (f *Folder) Each(do func(name string, info fs.FileInfo, err error) error) error {
	if _, err := f.File.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for {
		names, end := f.File.Readdirnames(NamesAtOnce)
		for _, name := range names {
			info, err := f.Lstat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := do(name, info, err); err != nil {
				return err
			}
		}
		if Is(end, io.EOF, fs.ErrNotExist) { // the folder itself may be removed
			return nil
		}
		if end != nil {
			return end
		}
	}
}

// ErrNotRegular reports that an entry is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Find returns a handle of the entry name of r, whatever it is, without opening it.
func Find(r *os.Root, name string) (*os.File, error) {
	return r.OpenFile(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
}

// FindUnmounted is Find for an entry of f that info describes. It returns EXDEV if something is mounted
// on it, and ENOENT if another entry is in its place now.
func (f *Folder) FindUnmounted(name string, info fs.FileInfo) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_BENEATH}
	fd, err := unix.Openat2(int(f.File.Fd()), name, &how)
	if err != nil {
		return nil, &os.PathError{Op: "openat2", Path: name, Err: err}
	}
	found := os.NewFile(uintptr(fd), name)
	if now, err := found.Stat(); err != nil || !os.SameFile(info, now) {
		found.Close()
		return nil, errors.Join(errReplaced, err)
	}
	return found, nil
}

// Chown changes the owner of the file of a handle of Find: of a link itself.
func Chown(f *os.File, uid, gid int) error {
	if err := unix.Fchownat(int(f.Fd()), "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "chown", Path: f.Name(), Err: err}
	}
	return nil
}

// Self returns a path that leads to the file of a handle, whatever has its name now.
func Self(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// OpenRegular opens the regular file name of r with flags of open(2), or returns ErrNotRegular. It
// examines the entry before it opens it, and opens the one that it examined: opening a device could act
// on the host, and opening a FIFO could wait.
func OpenRegular(r *os.Root, name string, flags int) (*os.File, error) {
	found, err := Find(r, name)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	info, err := found.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	return os.OpenFile(Self(found), flags|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// RenameTo renames the entry old to the entry name of dst. flags are those of renameat2; a file
// system that does not support them returns EINVAL.
func (f *Folder) RenameTo(old string, dst *Folder, name string, flags uint) error {
	err := unix.Renameat2(int(f.File.Fd()), old, int(dst.File.Fd()), name, flags)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: old, New: name, Err: err}
	}
	return nil
}

// RenameNew is RenameTo, but returns EEXIST if name exists in dst.
func (f *Folder) RenameNew(old string, dst *Folder, name string) error {
	err := f.RenameTo(old, dst, name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	if _, err := dst.Lstat(name); err == nil {
		return &os.LinkError{Op: "rename", Old: old, New: name, Err: syscall.EEXIST}
	}
	return f.RenameTo(old, dst, name, 0)
}

// LinkTo creates the hard link name in dst to the entry old.
func (f *Folder) LinkTo(old string, dst *Folder, name string) error {
	err := unix.Linkat(int(f.File.Fd()), old, int(dst.File.Fd()), name, 0)
	if err != nil {
		return &os.LinkError{Op: "link", Old: old, New: name, Err: err}
	}
	return nil
}

// SetTime sets the access and modification time of an entry, which may be a link.
func (f *Folder) SetTime(name string, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err == nil {
		err = unix.UtimesNanoAt(int(f.File.Fd()), name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return &os.PathError{Op: "chtimes", Path: name, Err: err}
	}
	return nil
}

// CreateNew creates the regular file name, which must not exist.
func (f *Folder) CreateNew(name string) (*os.File, error) {
	return f.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// Stat returns what the kernel knows of an entry.
func Stat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

// Inode identifies a file or a folder, as long as it exists or is open.
type Inode struct{ dev, ino uint64 }

// InodeOf returns what identifies an entry.
func InodeOf(info fs.FileInfo) Inode { return Inode{uint64(Stat(info).Dev), Stat(info).Ino} }

// Is reports whether err is one of targets.
func Is(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// Escapes reports whether an os.Root refused a path that leaves it. The standard
// library exports no error value for this; a test checks that its text is unchanged.
func Escapes(err error) bool {
	for err != nil {
		if err.Error() == "path escapes from parent" {
			return true
		}
		if all, joined := err.(interface{ Unwrap() []error }); joined {
			return slices.ContainsFunc(all.Unwrap(), Escapes)
		}
		err = errors.Unwrap(err)
	}
	return false
}
