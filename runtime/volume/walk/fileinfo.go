package walk

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fileInfo is the fs.FileInfo of an fstatat result, which package os does not
// offer. Its Sys returns a *syscall.Stat_t, as that of package os does.
type fileInfo struct {
	name string
	st   syscall.Stat_t
}

func newFileInfo(name string, st *unix.Stat_t) *fileInfo {
	i := &fileInfo{name: name}
	i.st.Dev, i.st.Ino, i.st.Nlink, i.st.Mode = st.Dev, st.Ino, st.Nlink, st.Mode
	i.st.Uid, i.st.Gid, i.st.Rdev, i.st.Size = st.Uid, st.Gid, st.Rdev, st.Size
	i.st.Blksize, i.st.Blocks = st.Blksize, st.Blocks
	i.st.Atim, i.st.Mtim, i.st.Ctim = syscall.Timespec(st.Atim), syscall.Timespec(st.Mtim), syscall.Timespec(st.Ctim)
	return i
}

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return i.st.Size }
func (i *fileInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i *fileInfo) Sys() any           { return &i.st }
func (i *fileInfo) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }

// Mode converts the mode bits of stat.
func (i *fileInfo) Mode() fs.FileMode {
	mode := fs.FileMode(i.st.Mode & 0o777)
	switch i.st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
	case syscall.S_IFDIR:
		mode |= fs.ModeDir
	case syscall.S_IFLNK:
		mode |= fs.ModeSymlink
	case syscall.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case syscall.S_IFSOCK:
		mode |= fs.ModeSocket
	case syscall.S_IFBLK:
		mode |= fs.ModeDevice
	case syscall.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	default:
		mode |= fs.ModeIrregular
	}
	if i.st.Mode&syscall.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if i.st.Mode&syscall.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if i.st.Mode&syscall.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}
