package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// Options of Write.
type Options struct {
	Ignore    []string            // entries to leave out, as lines of a .gitignore; a question mark is one character, with git one byte
	NameBytes int64               // bytes of memory for names
	Bounds    Bounds              // beyond them, Write fails
	Progress  func(bytes int64)   // called at each step with the bytes of files that were read so far; may be nil
	Written   func(n int64) error // called for each MiB of the archive, and at its end; may be nil
}

// Bounds end a backup of a tree that is too large, or grows ahead of it. 0 is no bound. One backup
// keeps those of all other volumes waiting.
type Bounds struct {
	Bytes    int64 // on disk, that the archive extracts to
	Apparent int64 // the sizes of the files, holes included, and a block for each entry

	Matching time.Duration // of a core, in which Ignore compares names
}

const (
	nameOverhead = 32      // the memory of a name of a folder that is read, besides its bytes
	linkOverhead = 96      // the memory of a hard link besides its path, in bytes
	reportBytes  = 1 << 20 // after how many bytes of the archive Written is called
)

// Write writes the tree below root to w. Entries that it cannot keep, and files that
// changed while it read them, are in the result's Skipped. It calls the functions of opt and
// w on its thread of low priority.
func Write(ctx context.Context, root *os.Root, w io.Writer, opt Options) (result v1.Snapshot, err error) {
	err = withLowPriority(func() (err error) {
		result, err = write(ctx, root, w, opt)
		return err
	})
	return result, err
}

func write(ctx context.Context, root *os.Root, w io.Writer, opt Options) (v1.Snapshot, error) {
	out := &output{w: w, written: opt.Written, hash: sha256.New()}
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return v1.Snapshot{}, err
	}
	x := &writer{opt: opt, ignore: parseRules(opt.Ignore), ctx: ctx.Err, tar: tar.NewWriter(z), buf: make([]byte, copyBytes), links: map[fsys.Inode]string{}}
	x.result.Skipped = []v1.Skipped{}
	err = x.root(root)
	for _, end := range []func() error{x.tar.Close, z.Close, out.report} {
		if err == nil {
			err = end()
		}
	}
	if out.err != nil { // it is the cause of any other error
		err = out.err
	}
	x.result.Size, x.result.Checksum = out.size, checksum(out.hash)
	return x.result, err
}

func checksum(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

// output passes the archive on, and computes its size and its checksum. It keeps its first
// error.
type output struct {
	w        io.Writer
	written  func(n int64) error
	hash     hash.Hash
	size     int64
	reported int64 // bytes that written was called with
	err      error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (n int, err error) {
	o.hash.Write(p)
	n, o.err = o.w.Write(p)
	if o.size += int64(n); o.err == nil && o.size-o.reported >= reportBytes {
		o.err = o.report()
	}
	return n, o.err
}

// report calls written with the bytes since the last report.
func (o *output) report() error {
	n := o.size - o.reported
	o.reported = o.size
	if o.written == nil || n == 0 {
		return nil
	}
	return o.written(n)
}

// writer writes one archive.
type writer struct {
	opt    Options
	ctx    func() error // the error of the context
	tar    *tar.Writer
	ignore []rule
	result v1.Snapshot
	buf    []byte

	read      int64                 // bytes of files
	apparent  int64                 // as Bounds.Apparent counts
	matching  time.Duration         // as Bounds.Matching counts
	links     map[fsys.Inode]string // paths of files that have several links
	nameBytes int64                 // memory of links, and of the names of the folders from the root to the current one
}

func (x *writer) root(root *os.Root) error {
	info, err := root.Stat(rootPath)
	if err != nil {
		return err
	}
	return x.folder(root, rootPath, info, 0)
}

// folder adds a folder and its entries.
func (x *writer) folder(dir *os.Root, at string, info fs.FileInfo, depth int) error {
	if err := x.add(newHeader(at, tar.TypeDir, info), block); err != nil {
		return err
	}
	before := x.nameBytes
	names, err := x.names(dir)
	if err != nil {
		return x.skipFailed(at, err)
	}
	size := x.nameBytes - before
	for _, name := range names {
		if err := x.entry(dir, name, path.Join(at, name), depth+1); err != nil {
			return err
		}
	}
	x.nameBytes -= size
	return nil
}

// names returns the names of a folder in order, each one once: a folder that changes while
// it is read may list a name twice.
func (x *writer) names(dir *os.Root) (names []string, err error) {
	f, err := dir.Open(rootPath)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for {
		if err := x.ctx(); err != nil {
			return nil, err
		}
		some, err := f.Readdirnames(fsys.NamesAtOnce)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, name := range some {
			x.nameBytes += nameOverhead + int64(len(name))
		}
		if x.nameBytes > x.opt.NameBytes {
			return nil, v1.Errorf(v1.SizeLimit, "A folder has too many files for a backup")
		}
		names = append(names, some...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// entry adds one entry, and the entries of a folder.
func (x *writer) entry(dir *os.Root, name, p string, depth int) error {
	if err := x.step(); err != nil {
		return err
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return x.skipFailed(p, err)
	}
	ignored, err := x.ignored(p, info.IsDir())
	switch {
	case ignored || err != nil:
		return err
	case len(p) > maxPath || info.IsDir() && depth > maxDepth:
		x.skip(p, v1.SkippedUnreadable)
		return nil
	}
	switch info.Mode().Type() {
	case 0:
		return x.file(dir, name, p, info)
	case fs.ModeDir:
		return x.subfolder(dir, name, p, info, depth)
	case fs.ModeSymlink:
		return x.symlink(dir, name, p, info)
	}
	x.skip(p, v1.SkippedSpecial)
	return nil
}

// ignored reports whether an entry is left out. Patterns with many asterisks may take milliseconds
// for each long path.
func (x *writer) ignored(p string, folder bool) (bool, error) {
	if len(x.ignore) == 0 {
		return false, nil
	}
	began := threadTime()
	ignored := match(x.ignore, p, folder)
	x.matching += threadTime() - began
	if most := x.opt.Bounds.Matching; most > 0 && x.matching > most {
		return false, v1.Errorf(v1.SizeLimit, "The patterns of ignore take too long for so many files: more than %s", most)
	}
	return ignored, nil
}

// step counts an entry, whatever becomes of it. It returns the error of the context, or that
// of a bound.
func (x *writer) step() error {
	if x.opt.Progress != nil { // also where files are empty
		x.opt.Progress(x.read)
	}
	if err := x.ctx(); err != nil {
		return err
	}
	return x.appear(block)
}

// appear adds n bytes to those that Bounds.Apparent bounds.
func (x *writer) appear(n int64) error {
	most := x.opt.Bounds.Apparent
	if most > 0 && n > most-x.apparent {
		return v1.Errorf(v1.SizeLimit, "The volume has too many files for a backup, or files with too large holes, "+
			"or grew while it was read: more than %d bytes with holes", most)
	}
	x.apparent += n
	return nil
}

func (x *writer) subfolder(dir *os.Root, name, p string, info fs.FileInfo, depth int) error {
	sub, err := fsys.Enter(dir, name, info)
	if err != nil {
		return x.skipFailed(p, err)
	}
	defer sub.Close()
	return x.folder(sub, p, info, depth)
}

func (x *writer) symlink(dir *os.Root, name, p string, info fs.FileInfo) error {
	target, err := dir.Readlink(name)
	if err != nil {
		return x.skipFailed(p, err)
	}
	h := newHeader(p, tar.TypeSymlink, info)
	h.Linkname = target
	return x.add(h, block)
}

// file adds a regular file, or a hard link to one that was added before.
func (x *writer) file(dir *os.Root, name, p string, info fs.FileInfo) error {
	if to := x.links[fsys.InodeOf(info)]; to != "" {
		h := newHeader(p, tar.TypeLink, info)
		h.Linkname = to
		return x.add(h, 0)
	}
	f, err := fsys.OpenRegular(dir, name, os.O_RDONLY)
	if err != nil {
		return x.skipFailed(p, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return x.skipFailed(p, err)
	}
	h := newHeader(p, tar.TypeReg, info)
	h.Size = info.Size()
	if err := errors.Join(x.appear(h.Size), x.ctx()); err != nil {
		return err
	}
	x.link(info, p)
	if err := x.add(h, block); err != nil {
		return err
	}
	failed, err := x.content(f, h.Size)
	if err != nil {
		return err
	}
	after, err := f.Stat()
	switch {
	case failed != nil && !errors.Is(failed, io.EOF):
		return x.skipFailed(p, failed)
	case err != nil:
		return x.skipFailed(p, err)
	case failed != nil || after.Size() != info.Size() || fsys.Stat(after).Ctim != fsys.Stat(info).Ctim:
		x.skip(p, v1.SkippedChanged)
	}
	return nil
}

// content adds size bytes of a file. Zeros replace what the file does not have any more, or
// the host cannot read: failed is io.EOF, or the error of the read.
func (x *writer) content(f *os.File, size int64) (failed, err error) {
	var disk onDisk
	for left := size; left > 0; {
		buf := x.buf[:min(int64(len(x.buf)), left)]
		n := 0
		if failed == nil {
			n, failed = io.ReadFull(f, buf)
			if errors.Is(failed, io.ErrUnexpectedEOF) {
				failed = io.EOF
			}
		}
		clear(buf[n:])
		err := EachRun(buf, func(from, to int) error { return x.count(disk.add(to - from)) })
		if err == nil {
			_, err = x.tar.Write(buf)
		}
		if err = errors.Join(err, x.ctx()); err != nil {
			return failed, err
		}
		left -= int64(len(buf))
		if x.read += int64(len(buf)); x.opt.Progress != nil {
			x.opt.Progress(x.read)
		}
	}
	return failed, nil
}

// link records the path of a file that has several links. Beyond NameBytes its other
// links become files of their own.
func (x *writer) link(info fs.FileInfo, p string) {
	if n := linkOverhead + int64(len(p)); fsys.Stat(info).Nlink > 1 && x.nameBytes+n <= x.opt.NameBytes {
		x.links[fsys.InodeOf(info)] = p
		x.nameBytes += n
	}
}

// add writes a header, whose entry takes bytes on disk without its content.
func (x *writer) add(h *tar.Header, bytes int64) error {
	if h.Typeflag != tar.TypeDir {
		x.result.Files++
	}
	if err := x.count(bytes); err != nil {
		return err
	}
	return x.tar.WriteHeader(h)
}

// count adds bytes on disk to those that the archive extracts to.
func (x *writer) count(bytes int64) error {
	x.result.Bytes += bytes
	if most := x.opt.Bounds.Bytes; most > 0 && x.result.Bytes > most {
		return v1.Errorf(v1.SizeLimit, "The volume is larger than its size limit, or grew while it was read: more than %d bytes", most)
	}
	return nil
}

// skipFailed skips an entry that cannot be read, or returns err.
func (x *writer) skipFailed(p string, err error) error {
	reason := skipReason(err)
	if reason == "" {
		return err
	}
	x.skip(p, reason)
	return nil
}

func (x *writer) skip(p, reason string) {
	x.result.SkippedTotal++
	if len(x.result.Skipped) < v1.MaxSkipped {
		x.result.Skipped = append(x.result.Skipped, v1.Skipped{Path: v1.EscapePath(p), Reason: reason})
	}
}
