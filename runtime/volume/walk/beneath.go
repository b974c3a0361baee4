package walk

import (
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// OpenBeneath opens the file at the path p below d with one system call, openat2(2): an os.Root
// opens each folder on the way. It follows links that stay below d. Kernels before 5.6 do not have
// the call: the caller uses an os.Root if it fails, whose errors are those that clients know.
func OpenBeneath(d *Dir, p string, flags int, perm fs.FileMode) (*os.File, error) {
	fd, err := openat2(d, p, flags, perm)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), p), nil
}

// StatBeneath describes the file at the path p below d, which it resolves as OpenBeneath does. Its
// result is not one for os.SameFile.
func StatBeneath(d *Dir, p string) (fs.FileInfo, error) {
	fd, err := openat2(d, p, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, wrap("stat", p, err)
	}
	return newFileInfo(path.Base(p), &st), nil
}

func openat2(d *Dir, p string, flags int, perm fs.FileMode) (fd int, err error) {
	how := &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Mode: uint64(perm.Perm()),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	err = retry(d, "openat2", p, func(in int) (err error) {
		fd, err = unix.Openat2(in, p, how)
		return err
	})
	return fd, err
}
