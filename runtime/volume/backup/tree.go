package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

const (
	rootPath  = "."       // the path of the first member
	block     = 4096      // the unit in which disk space is counted, in bytes
	copyBytes = 256 << 10 // the size of the buffer for contents, in whole blocks
	maxName   = 255       // the longest name of an entry on Linux
	maxPath   = 4095      // the longest path that a system call takes, so GNU tar too
	maxDepth  = 256       // of nested folders; each one that is open takes a handle
	readNames = 512       // how many names of a folder are read at once
)

var zeros [block]byte

// EachRun calls do with the longest runs of buf, in whole blocks from its start, that have no
// block of zeros. The last block may be shorter.
func EachRun(buf []byte, do func(from, to int) error) error {
	begin := -1
	for off := 0; off < len(buf); off += block {
		b := buf[off:min(off+block, len(buf))]
		switch empty := bytes.Equal(b, zeros[:len(b)]); {
		case empty && begin >= 0:
			if err := do(begin, off); err != nil {
				return err
			}
			begin = -1
		case !empty && begin < 0:
			begin = off
		}
	}
	if begin < 0 {
		return nil
	}
	return do(begin, len(buf))
}

// onDisk counts the bytes on disk of a regular file. Each inode counts a block at least.
type onDisk struct{ data int64 }

// add adds n bytes and returns by how many bytes on disk the file has grown.
func (d *onDisk) add(n int) int64 {
	before := max(d.data, block)
	d.data += (int64(n) + block - 1) / block * block
	return max(d.data, block) - before
}

// inode identifies a file.
type inode struct{ dev, ino uint64 }

// stat returns what the host has about an entry of a file system.
func stat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

// newHeader returns the header of an entry, without size and target.
func newHeader(p string, kind byte, info fs.FileInfo) *tar.Header {
	st := stat(info)
	if kind == tar.TypeDir {
		p += "/"
	}
	return &tar.Header{Format: tar.FormatPAX, Typeflag: kind, Name: p, ModTime: info.ModTime(),
		Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid)}
}

// checkHeader returns an error if Write does not produce a member with the header. It
// removes the slash at the end of a folder's name.
func checkHeader(h *tar.Header) error {
	if h.Typeflag == tar.TypeDir {
		h.Name = strings.TrimSuffix(h.Name, "/")
	}
	switch {
	case !validPath(h.Name) || h.Name == rootPath && h.Typeflag != tar.TypeDir:
		return damaged("a member has the name %q", shorten(h.Name))
	case h.Typeflag == tar.TypeLink && !validPath(h.Linkname):
		return damaged("the hard link %q leads to %q", shorten(h.Name), shorten(h.Linkname))
	case h.Typeflag == tar.TypeReg, h.Typeflag == tar.TypeDir, h.Typeflag == tar.TypeSymlink, h.Typeflag == tar.TypeLink:
		return nil
	}
	return damaged("%q is no file, folder or link", shorten(h.Name))
}

// validPath reports whether p is rootPath or a clean path below it.
func validPath(p string) bool {
	if p == "" || len(p) > maxPath || strings.IndexByte(p, 0) >= 0 {
		return false
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > maxName {
			return false
		}
	}
	return path.Clean(p) == p && p[0] != '/' && p != ".." && !strings.HasPrefix(p, "../")
}

// shorten bounds a name for an error.
func shorten(name string) string {
	const most = 100
	if len(name) > most {
		return name[:most] + "…"
	}
	return name
}

var errNotRegular = errors.New("not a regular file")

// openRegular opens the regular file name of dir for reading, or returns errNotRegular. It
// examines the entry before it opens it, and opens the one that it examined: opening a
// device could act on the host, and opening a FIFO could wait.
func openRegular(dir *os.Root, name string) (*os.File, error) {
	found, err := dir.OpenFile(name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	info, err := found.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(found.Fd())), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// openFolder opens the folder name of dir, and no other one that a link leads to.
func openFolder(dir *os.Root, name string, examined fs.FileInfo) (*os.Root, error) {
	sub, err := dir.OpenRoot(name)
	if escapes(err) {
		return nil, syscall.ELOOP
	}
	if err != nil {
		return nil, err
	}
	info, err := sub.Stat(rootPath)
	if err == nil && !os.SameFile(info, examined) {
		err = syscall.ELOOP
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// escapes reports whether an os.Root refused a link that leads out of it. All errors of the
// kernel have a number, and this one has not.
func escapes(err error) bool {
	var number syscall.Errno
	return err != nil && !errors.As(err, &number)
}

// damaged returns the refusal of an archive that Write did not produce.
func damaged(format string, args ...any) error {
	return v1.Errorf(v1.InvalidArchive, "Backup is damaged: "+format, args...)
}

// skipReason returns why an entry is left out of the archive whose read failed, or ""
// if the error is not about that entry.
func skipReason(err error) string {
	switch {
	case is(err, syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EINVAL, syscall.ENXIO, syscall.ESTALE, errNotRegular):
		return v1.SkippedRemoved
	case is(err, syscall.EACCES, syscall.EPERM, syscall.EIO, syscall.EBUSY, syscall.EOPNOTSUPP, syscall.EOVERFLOW, syscall.EUCLEAN, syscall.EBADMSG):
		return v1.SkippedUnreadable
	}
	return ""
}

func is(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
