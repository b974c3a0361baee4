package snapshot

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// rootPath is the path of the first member.
const rootPath = "."

// maxPath is the longest path of a member. Linux opens no longer one, so GNU tar could
// not extract it.
const maxPath = 4095

// maxName is the longest name of an entry on Linux.
const maxName = 255

// maxTarget is the longest target of a symbolic link on Linux.
const maxTarget = 4095

// block is the unit in which disk space is counted, in bytes.
const block = 4096

// kind is the type of a member.
type kind byte

// The kinds are the type flags of tar.
const (
	file     kind = '0'
	hardLink kind = '1'
	symlink  kind = '2'
	folder   kind = '5'
)

// entry is one member of an archive.
type entry struct {
	path     string // from the root of the tree, or rootPath
	kind     kind
	mode     uint32 // the 12 bits of chmod
	uid, gid uint32
	time     time.Time // of the last modification
	size     int64     // of a file
	target   string    // of a link
	sparse   bool      // the member begins with a map of its extents
	stored   int64     // bytes of the member's content, those of the map included
	data     int64     // bytes on disk of a file's extents
	sum      [32]byte  // SHA-256 of the member's content
}

// extent is a part of a file that has data.
type extent struct{ off, n int64 }

// onDisk returns how many bytes on disk an entry takes. Each inode counts a block at
// least.
func (e *entry) onDisk() int64 {
	if e.kind == hardLink {
		return 0
	}
	return max(e.data, block)
}

// roundUp rounds n bytes up to whole blocks.
func roundUp(n int64) int64 { return (n + block - 1) / block * block }

// check returns an error if the entry cannot be a member that Write produced.
func (e *entry) check() error {
	if !validPath(e.path) || e.path == rootPath && e.kind != folder {
		return damaged("a member has the name %q", shorten(e.path))
	}
	switch e.kind {
	case file, folder:
		if e.target != "" {
			return damaged("%q has a target", shorten(e.path))
		}
	case symlink:
		if e.target == "" || len(e.target) > maxTarget {
			return damaged("the link %q has a target of %d bytes", shorten(e.path), len(e.target))
		}
	case hardLink:
		if !validPath(e.target) || e.target == rootPath {
			return damaged("the hard link %q leads to %q", shorten(e.path), shorten(e.target))
		}
	default:
		return damaged("%q is no file, folder or link", shorten(e.path))
	}
	if e.kind != file && (e.stored != 0 || e.size != 0 || e.sparse) {
		return damaged("%q has content", shorten(e.path))
	}
	return nil
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

// decimalTime returns t in seconds since 1970, as in a PAX header.
func decimalTime(t time.Time) string {
	sec, nsec := t.Unix(), int64(t.Nanosecond())
	if nsec == 0 {
		return fmt.Sprint(sec)
	}
	sign := ""
	if sec < 0 {
		sign, sec, nsec = "-", -(sec + 1), 1e9-nsec
	}
	return sign + strings.TrimRight(fmt.Sprintf("%d.%09d", sec, nsec), "0")
}
