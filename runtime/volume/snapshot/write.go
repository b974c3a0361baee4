package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	v1 "berth/api/v1"
	"berth/runtime/volume/walk"
)

// Options of Write.
type Options struct {
	Ignore    *Ignore                // entries to leave out
	Hidden    func(name string) bool // entries of the root folder that are not part of the tree
	TempDir   string                 // of a file without a name, for a large manifest
	NameBytes int64                  // bytes of memory for names
	Bounds    Bounds                 // beyond them, Write fails
	Progress  func(bytes int64)      // called at each step with the bytes of files that were read so far
}

// seenOverhead is the memory of a name of a folder that was visited, in bytes.
const seenOverhead = 32

// linkOverhead is the memory of a hard link besides its path, in bytes.
const linkOverhead = 96

// Write writes the tree below root to w. Entries that it cannot keep, and files that
// changed while it read them, are in the result's Skipped.
func Write(ctx context.Context, root *walk.Dir, w io.Writer, opt Options) (v1.Snapshot, error) {
	manifest, err := newSpool(opt.TempDir)
	if err != nil {
		return v1.Snapshot{}, err
	}
	defer manifest.close()
	out, err := newFrames(w)
	if err != nil {
		return v1.Snapshot{}, err
	}
	x := &writer{opt: opt, ctxErr: ctx.Err, out: out, manifest: manifest, hash: sha256.New(),
		links: map[inode]string{}, seed: maphash.MakeSeed()}
	x.result.Skipped = []v1.Skipped{}
	err = x.write(root)
	if failed := out.Close(); failed != nil { // it is the cause of any other error
		err = failed
	}
	return x.result, err
}

// writer writes one archive.
type writer struct {
	opt      Options
	ctxErr   func() error
	out      *frames
	manifest *spool
	hash     hash.Hash
	result   v1.Snapshot
	read     int64 // bytes of files
	steps    int64

	links     map[inode]string // paths of files that have several links
	seed      maphash.Seed
	seen      []map[uint64]struct{} // hashes of the names in each folder from the root to the current one
	nameBytes int64

	header []byte
}

// inode identifies a file.
type inode struct{ dev, ino uint64 }

func (x *writer) write(root *walk.Dir) error {
	info, err := root.File().Stat()
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := io.WriteString(x.manifest, manifestHead); err != nil {
		return err
	}
	if err := x.add(newEntry(rootPath, folder, info), nil); err != nil {
		return err
	}
	x.seen = append(x.seen, map[uint64]struct{}{})
	w := walk.Walker{CtxErr: x.step, Visit: x.visit, OnFailed: x.failed,
		OnLeave: x.leave, Skip: func(top bool, name string) bool { return top && x.opt.Hidden != nil && x.opt.Hidden(name) }}
	if err := w.Walk(root, "", 0); err != nil {
		return err
	}
	return x.end(began)
}

// newEntry returns an entry with the metadata of info.
func newEntry(path string, k kind, info fs.FileInfo) *entry {
	e := &entry{path: path, kind: k, time: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.mode, e.uid, e.gid = st.Mode&0o7777, st.Uid, st.Gid
	}
	return e
}

// visit adds one entry. It returns fs.SkipDir for a folder that is left out.
func (x *writer) visit(it walk.Entry) error {
	p, isFolder := it.Path(), it.Info.IsDir()
	if first, err := x.first(it.Name); !first || err != nil {
		return skipFolder(isFolder, err)
	}
	switch {
	case p == ManifestName:
		x.skip(p, v1.SkippedReserved)
		return skipFolder(isFolder, nil)
	case x.opt.Ignore.match(p, isFolder):
		return skipFolder(isFolder, nil)
	case len(p) > maxPath:
		x.skip(p, v1.SkippedUnreadable)
		return skipFolder(isFolder, nil)
	}
	switch it.Info.Mode().Type() {
	case fs.ModeDir:
		x.seen = append(x.seen, map[uint64]struct{}{})
		return x.add(newEntry(p, folder, it.Info), nil)
	case fs.ModeSymlink:
		return x.symlink(it, p)
	case 0:
		return x.file(it, p)
	}
	x.skip(p, v1.SkippedSpecial)
	return nil
}

func skipFolder(isFolder bool, err error) error {
	if isFolder && err == nil {
		return fs.SkipDir
	}
	return err
}

// first reports whether the current folder had no entry of this name before. A folder
// that changes while it is read may list a name twice, and an archive that has a name
// twice could not be restored.
func (x *writer) first(name string) (bool, error) {
	in, key := x.seen[len(x.seen)-1], maphash.String(x.seed, name)
	if _, twice := in[key]; twice {
		return false, nil
	}
	if x.nameBytes += seenOverhead; x.nameBytes > x.opt.NameBytes {
		return false, v1.Errorf(v1.SizeLimit, "A folder has too many files for a backup")
	}
	in[key] = struct{}{}
	return true, nil
}

// leave forgets the names of the folders below depth.
func (x *writer) leave(depth int) error {
	for len(x.seen) > depth+1 {
		last := len(x.seen) - 1
		x.nameBytes -= int64(len(x.seen[last])) * seenOverhead
		x.seen = x.seen[:last]
	}
	return nil
}

// failed skips an entry that cannot be read, or returns err.
func (x *writer) failed(it walk.Entry, err error) error { return x.skipFailed(it.Path(), err) }

func (x *writer) skipFailed(path string, err error) error {
	reason := skipReason(err)
	if reason == "" {
		return err
	}
	x.skip(path, reason)
	return nil
}

func (x *writer) skip(path, reason string) {
	x.result.SkippedTotal++
	if len(x.result.Skipped) < v1.MaxSkipped {
		path = strings.ToValidUTF8(path, "\uFFFD")
		x.result.Skipped = append(x.result.Skipped, v1.Skipped{Path: path, Reason: reason})
	}
}

func (x *writer) symlink(it walk.Entry, p string) error {
	target, err := it.Dir.Readlink(it.Name)
	if err != nil {
		return x.skipFailed(p, err)
	}
	e := newEntry(p, symlink, it.Info)
	e.target = target
	return x.add(e, nil)
}

// file adds a regular file, or a hard link to one that was added before.
func (x *writer) file(it walk.Entry, p string) error {
	if to := x.linked(it.Info); to != "" {
		e := newEntry(p, hardLink, it.Info)
		e.target = to
		return x.add(e, nil)
	}
	f, err := it.Dir.OpenRegular(it.Name)
	if err != nil {
		return x.skipFailed(p, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return x.skipFailed(p, err)
	}
	c := newContent(f, info)
	e := newEntry(p, file, info)
	e.size, e.stored, e.sparse, e.data = info.Size(), c.stored(), c.sparse, onDisk(c.parts)
	x.link(info, p)
	if err := x.add(e, c); err != nil {
		return err
	}
	after, err := f.Stat()
	switch {
	case c.failed != nil:
		return x.skipFailed(p, c.failed)
	case err != nil:
		return x.skipFailed(p, err)
	case c.short || after.Size() != info.Size() || changeTime(after) != changeTime(info):
		x.skip(p, v1.SkippedChanged)
	}
	return nil
}

// changeTime returns when a file or its inode changed last.
func changeTime(info os.FileInfo) syscall.Timespec {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return syscall.Timespec{}
	}
	return st.Ctim
}

// linked returns the path under which the file was added before, or "".
func (x *writer) linked(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 {
		return ""
	}
	return x.links[inode{uint64(st.Dev), st.Ino}]
}

// link records the path of a file that has several links. Beyond NameBytes its other
// links become files of their own.
func (x *writer) link(info fs.FileInfo, p string) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if n := linkOverhead + int64(len(p)); ok && st.Nlink > 1 && x.nameBytes+n <= x.opt.NameBytes {
		x.links[inode{uint64(st.Dev), st.Ino}] = p
		x.nameBytes += n
	}
}

// add writes the headers of e, its content if it has any, and its line in the manifest.
func (x *writer) add(e *entry, c *content) error {
	if e.kind != folder {
		x.result.Files++
	}
	if e.path != rootPath {
		if _, err := io.WriteString(x.manifest, manifestBetween); err != nil {
			return err
		}
	}
	x.result.Bytes += e.onDisk()
	if most := x.opt.Bounds.Bytes; most > 0 && x.result.Bytes > most {
		return v1.Errorf(v1.SizeLimit, "The volume is larger than its size limit, or grew while it was read: more than %d bytes", most)
	}
	if err := x.member(e, c); err != nil {
		return err
	}
	_, err := x.manifest.Write(e.line())
	return err
}

// member writes one member and computes the checksum of its content.
func (x *writer) member(e *entry, c *content) error {
	x.header = appendHeader(x.header[:0], e)
	if _, err := x.out.Write(x.header); err != nil || c == nil {
		e.sum = sha256.Sum256(nil)
		return err
	}
	x.hash.Reset()
	if err := x.content(c); err != nil {
		return err
	}
	x.hash.Sum(e.sum[:0])
	return x.pad(e.stored)
}

// pad fills up the content of a member.
func (x *writer) pad(stored int64) error {
	_, err := x.out.Write(make([]byte, padding(stored)))
	return err
}

// end writes the manifest and the end of the tar.
func (x *writer) end(began time.Time) error {
	if _, err := fmt.Fprintf(x.manifest, manifestTail, x.result.Files, x.result.Bytes); err != nil {
		return err
	}
	e := &entry{path: ManifestName, kind: file, mode: 0o600, time: began.Truncate(time.Second), size: x.manifest.size, stored: x.manifest.size}
	x.header = appendHeader(x.header[:0], e)
	if _, err := x.out.Write(x.header); err != nil {
		return err
	}
	if err := x.manifest.copyTo(checked{x.out, x.ctxErr}); err != nil {
		return err
	}
	if err := x.pad(e.stored); err != nil {
		return err
	}
	_, err := x.out.Write(make([]byte, 2*blockSize))
	return err
}

// checked writes until the context ends.
type checked struct {
	w      io.Writer
	ctxErr func() error
}

func (c checked) Write(p []byte) (int, error) {
	if err := c.ctxErr(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}
