package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// folder is an open folder: an os.Root for what is in it, and its handle for what os.Root does not
// offer. The methods of folder take the name of one entry, and follow no link.
type folder struct {
	*os.Root
	file *os.File
}

// openFolder opens the folder p below r. It follows links that stay below r. "/." lets it open
// nothing but a folder, so a FIFO cannot block it.
func openFolder(r *os.Root, p string) (*folder, error) {
	sub, err := r.OpenRoot(p + "/.")
	if err != nil {
		return nil, err
	}
	file, err := sub.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		sub.Close()
		return nil, err
	}
	return &folder{sub, file}, nil
}

// makeFolder creates the folder name, and opens it.
func makeFolder(in *folder, name string) (*folder, error) {
	if err := in.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	return openFolder(in.Root, name)
}

// errReplacedFolder reports that a folder was replaced after it was examined.
var errReplacedFolder = fmt.Errorf("%w: it was replaced", fs.ErrNotExist)

// enter opens the folder name, which info describes. A link in its place might lead to another one.
func (f *folder) enter(name string, info fs.FileInfo) (*folder, error) {
	sub, err := openFolder(f.Root, name)
	if err != nil {
		if escapes(err) || is(err, syscall.ENOTDIR, syscall.ELOOP) {
			return nil, errReplacedFolder
		}
		return nil, err
	}
	if found, err := sub.file.Stat(); err != nil || !os.SameFile(info, found) {
		sub.close()
		return nil, errors.Join(errReplacedFolder, err)
	}
	return sub, nil
}

func (f *folder) close() {
	f.file.Close()
	f.Close() // the os.Root
}

// sync makes the names in the folder durable.
func (f *folder) sync() error { return f.file.Sync() }

// namesAtOnce is how many names of a folder are read at a time.
const namesAtOnce = 512

// each calls do for each entry of the folder, in the order of the disk, with its description or the
// reason why there is none. It leaves out entries that are removed meanwhile.
func (f *folder) each(do func(name string, info fs.FileInfo, err error) error) error {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for {
		names, end := f.file.Readdirnames(namesAtOnce)
		for _, name := range names {
			info, err := f.Lstat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := do(name, info, err); err != nil {
				return err
			}
		}
		if is(end, io.EOF, fs.ErrNotExist) { // the folder itself may be removed
			return nil
		}
		if end != nil {
			return end
		}
	}
}

// errNotRegular reports that an entry is not a regular file.
var errNotRegular = errors.New("not a regular file")

// find returns a handle of the entry name, whatever it is, without opening it.
func (f *folder) find(name string) (*os.File, error) {
	fd, err := unix.Openat(int(f.file.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// self returns a path that leads to the file of a handle, whatever has its name now.
func self(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// openRegular opens the regular file name for reading, or returns errNotRegular.
func (f *folder) openRegular(name string) (*os.File, error) {
	return f.openFile(name, os.O_RDONLY)
}

// openFile is openRegular with flags of open(2). It examines the entry before it opens it, and opens
// the one that it examined: opening a device could act on the host, and opening a FIFO could wait.
func (f *folder) openFile(name string, flags int) (*os.File, error) {
	found, err := f.find(name)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	info, err := found.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	return os.OpenFile(self(found), flags|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// rename renames the entry old to the entry name of dst. flags are those of renameat2; a file
// system that does not support them returns EINVAL.
func (f *folder) rename(old string, dst *folder, name string, flags uint) error {
	err := unix.Renameat2(int(f.file.Fd()), old, int(dst.file.Fd()), name, flags)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: old, New: name, Err: err}
	}
	return nil
}

// renameNew is rename, but returns EEXIST if name exists in dst.
func (f *folder) renameNew(old string, dst *folder, name string) error {
	err := f.rename(old, dst, name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	if _, err := dst.Lstat(name); err == nil {
		return &os.LinkError{Op: "rename", Old: old, New: name, Err: syscall.EEXIST}
	}
	return f.rename(old, dst, name, 0)
}

// link creates the hard link name in dst to the entry old.
func (f *folder) link(old string, dst *folder, name string) error {
	err := unix.Linkat(int(f.file.Fd()), old, int(dst.file.Fd()), name, 0)
	if err != nil {
		return &os.LinkError{Op: "link", Old: old, New: name, Err: err}
	}
	return nil
}

// setTime sets the access and modification time of an entry, which may be a link.
func (f *folder) setTime(name string, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err == nil {
		err = unix.UtimesNanoAt(int(f.file.Fd()), name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return &os.PathError{Op: "chtimes", Path: name, Err: err}
	}
	return nil
}

// create creates the regular file name, which must not exist.
func (f *folder) create(name string) (*os.File, error) {
	return f.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// top opens the root folder of the volume.
func (vol *openVolume) top() (*folder, error) { return openFolder(vol.root, root) }

// syncDir makes the names in r durable.
func syncDir(r *os.Root) error {
	d, err := openFolder(r, root)
	if err != nil {
		return err
	}
	defer d.close()
	return d.sync()
}
