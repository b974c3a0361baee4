package backup

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

const (
	rootPath  = "."       // the path of the first member
	block     = 4096      // the unit in which disk space is counted, in bytes
	copyBytes = 256 << 10 // the size of the buffer for contents, in whole blocks
	maxName   = 255       // the longest name of an entry on Linux
	maxPath   = 4095      // the longest path that a system call takes, so GNU tar too
	maxDepth  = 256       // of nested folders; each one that is open takes a handle, and another one when it is extracted
)

var zeros [block]byte

// walk reads the tree below root in the order of its names. w.Within is called for the root folder too.
func walk(root *os.Root, w fsys.Walker) error {
	top, err := fsys.NewFolder(root.OpenRoot(rootPath))
	if err != nil {
		return err
	}
	defer top.Close()
	info, err := top.File.Stat()
	if err != nil {
		return err
	}
	w.Depth = maxDepth + 1
	return w.Within(fsys.Entry{In: top, Name: rootPath, Info: info}, func() error { return w.Walk(top, rootPath, 0) })
}

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

// newHeader returns the header of an entry, without size and target.
func newHeader(p string, kind byte, info fs.FileInfo) *tar.Header {
	st := fsys.Stat(info)
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
	case h.Typeflag == tar.TypeSymlink && (h.Linkname == "" || len(h.Linkname) > maxPath):
		return damaged("the symbolic link %q leads to %q", shorten(h.Name), shorten(h.Linkname))
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
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}

// damaged returns the refusal of an archive that Write did not produce.
func damaged(format string, args ...any) error {
	return v1.Errorf(v1.InvalidArchive, "Backup is damaged: "+format, args...)
}

// skipReason returns why an entry is left out of the archive whose read failed, or ""
// if the error is not about that entry.
func skipReason(err error) string {
	switch {
	case fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.ELOOP, syscall.EINVAL, syscall.ENXIO, syscall.ESTALE, fsys.ErrNotRegular):
		return v1.SkippedRemoved
	case fsys.Is(err, syscall.EACCES, syscall.EPERM, syscall.EIO, syscall.EBUSY, syscall.EOPNOTSUPP, syscall.EOVERFLOW,
		syscall.EUCLEAN, syscall.EBADMSG):
		return v1.SkippedUnreadable
	}
	return ""
}
