package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// item is an entry of a listing. Two trees are equal if their listings are: names are in the order of a
// walk, and of several hard links all but the first lead to that one.
type item struct {
	Path []byte   `json:"p"`
	Type byte     `json:"t"`           // of a tar header
	Mode uint32   `json:"m,omitempty"` // 12 bits; none of a link
	UID  uint32   `json:"u,omitempty"`
	GID  uint32   `json:"g,omitempty"`
	Size int64    `json:"s,omitempty"` // of a regular file
	Time [2]int64 `json:"c,omitzero"`  // seconds and nanoseconds of the last change of the content
	Link []byte   `json:"l,omitempty"` // where a link leads to

	round int64 // see partBytes, in nanoseconds; behind the line of a file, as it is no part of what has to be equal
}

// itemOf returns the entry of a header. Of a further hard link everything else is that of the first.
func itemOf(p string, h *tar.Header) item {
	it := item{Path: []byte(p), Type: h.Typeflag, Link: []byte(h.Linkname)}
	if h.Typeflag == tar.TypeLink {
		return it
	}
	it.UID, it.GID, it.Size = uint32(h.Uid), uint32(h.Gid), h.Size
	it.Time = [2]int64{h.ModTime.Unix(), int64(h.ModTime.Nanosecond())}
	if h.Typeflag != tar.TypeSymlink {
		it.Mode = uint32(h.Mode)
	}
	return it
}

// comparePaths compares paths in the order of a walk: everything in a folder comes before the next name beside it.
func comparePaths(a, b string) int {
	return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
}

// ListTree writes the listing of a tree to w, as zstd, and returns its digest. Entries that are no file, folder or link are
// not in it. An entry that cannot be read is an error: the listing would not be that of the whole tree.
func ListTree(ctx context.Context, root *os.Root, w io.Writer, nameBytes int64, p v1.Priority) (tree v1.TreeSum, err error) {
	err = WithPriority(p, func() error {
		z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		out := bufio.NewWriter(z)
		l := newLister(nameBytes)
		l.emit = func(e fsys.Entry, h *tar.Header, line []byte) error {
			if h.Typeflag == tar.TypeReg {
				line = strconv.AppendInt(append(line, roundMark), time.Unix(fsys.Stat(e.Info).Atim.Unix()).UnixNano(), 10)
			}
			_, err := out.Write(append(line, '\n'))
			return err
		}
		if err := l.walk(ctx, root); err != nil {
			return err
		}
		tree = l.sum()
		return errors.Join(out.Flush(), z.Close())
	})
	return tree, err
}

// lister walks a tree in the order of a listing, and computes its digest.
type lister struct {
	names fsys.Names
	hash  hash.Hash // of the listing
	tree  v1.TreeSum
	emit  func(e fsys.Entry, h *tar.Header, line []byte) error // called for each entry, a folder before what is in it
	left  func(e fsys.Entry) error                             // called when all entries of a folder were emitted; may be nil
}

func newLister(nameBytes int64) *lister {
	return &lister{names: fsys.Names{Free: nameBytes}, hash: sha256.New()}
}

func (l *lister) walk(ctx context.Context, root *os.Root) error {
	return walk(root, fsys.Walker{Check: ctx.Err, Visit: l.visit, Within: l.folder, Failed: cannotMove, Order: &l.names})
}

// sum returns the digest of the entries so far.
func (l *lister) sum() v1.TreeSum {
	l.tree.Digest = checksum(l.hash)
	return l.tree
}

// cannotMove returns the error of an entry that cannot be read. One that was removed meanwhile is none.
func cannotMove(p string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if reason := skipReason(err); reason == v1.SkippedRemoved {
		return nil
	}
	return v1.Errorf(v1.InvalidRequest, "%s cannot be read: %v", v1.EscapePath(p), err)
}

func (l *lister) folder(e fsys.Entry, entries func() error) error {
	err := l.entry(e, newHeader(e.Path(), tar.TypeDir, e.Info))
	if err == nil {
		err = entries()
	}
	if err == nil && l.left != nil {
		err = l.left(e)
	}
	return err
}

// visit emits an entry that is no folder.
func (l *lister) visit(e fsys.Entry) error {
	p := e.Path()
	if len(p) > maxPath {
		return cannotMove(p, fsys.ErrTooDeep)
	}
	h := newHeader(p, tar.TypeReg, e.Info)
	switch e.Info.Mode().Type() {
	case fs.ModeSymlink:
		target, err := e.In.Readlink(e.Name)
		if err != nil {
			return cannotMove(p, err)
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
	case 0:
		if to := l.names.First(e.Info); to != "" {
			h.Typeflag, h.Linkname = tar.TypeLink, to
			break
		}
		l.names.Add(e.Info, p)
		h.Size = e.Info.Size()
	default:
		return nil
	}
	return l.entry(e, h)
}

func (l *lister) entry(e fsys.Entry, h *tar.Header) error {
	line, err := json.Marshal(itemOf(e.Path(), h))
	if err != nil {
		return err
	}
	l.hash.Write(line)
	l.hash.Write([]byte{'\n'})
	l.tree.Entries++
	l.tree.Bytes += h.Size
	return l.emit(e, h, line)
}

const (
	maxLine   = 16 << 10 // bounds a line of a listing: two paths in base64, and the rest
	roundMark = '\t'     // before item.round: JSON has none
)

// cursor reads a listing.
type cursor struct {
	lines *bufio.Scanner
	close func()
	line  []byte // of the current entry, until the next call of next
	now   item
	over  bool
}

// is reports whether the current entry has this line.
func (c *cursor) is(line []byte) bool { return bytes.Equal(c.line, line) }

// openListing begins to read a listing that ListTree has written. A nil reader is an empty one.
func openListing(r io.Reader) (*cursor, error) {
	if r == nil {
		return &cursor{over: true, close: func() {}}, nil
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	c := &cursor{lines: bufio.NewScanner(z), close: z.Close}
	c.lines.Buffer(make([]byte, maxLine), maxLine)
	return c, c.next()
}

// next goes to the next entry, which must come after the one before.
func (c *cursor) next() error {
	before := c.now.Path
	if !c.lines.Scan() {
		c.over = true
		return c.lines.Err()
	}
	line, round, _ := bytes.Cut(c.lines.Bytes(), []byte{roundMark})
	c.line, c.now = line, item{}
	if err := json.Unmarshal(line, &c.now); err != nil {
		return err
	}
	if len(round) > 0 {
		var err error
		if c.now.round, err = strconv.ParseInt(string(round), 10, 64); err != nil {
			return err
		}
	}
	p := string(c.now.Path)
	if !validPath(p) || (before == nil) != (p == rootPath) ||
		len(before) > 0 && string(before) != rootPath && comparePaths(string(before), p) >= 0 {
		return v1.Errorf(v1.InvalidRequest, "the listing is not in order")
	}
	return nil
}

// changedSince reports whether the host has recorded a change of an entry at or after a time.
func changedSince(info fs.FileInfo, since time.Time) bool {
	at := fsys.Stat(info).Ctim
	return !time.Unix(at.Sec, at.Nsec).Before(since)
}
