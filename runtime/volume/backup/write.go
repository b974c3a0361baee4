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
	Progress  Progress            // called at each step; may be nil
	Written   func(n int64) error // called for each MiB of the archive, and at its end; may be nil
}

// Progress receives the bytes of files that were read so far, and the bytes of holes of the files that were met.
type Progress func(bytes, holes int64)

// Bounds end a backup of a tree that is too large, or grows ahead of it. 0 is no bound. One backup
// keeps those of all other volumes waiting.
type Bounds struct {
	Bytes    int64 // on disk, that the archive extracts to
	Apparent int64 // the sizes of the files, holes included, and a block for each entry

	Holes int64 // of the files: they take no space, and the time that as many bytes take

	Matching time.Duration // of a core, in which Ignore compares names
}

// reportBytes is after how many bytes of the archive Written is called.
const reportBytes = 1 << 20

// Write writes the tree below root to w. Entries that it cannot keep, and files that
// changed while it read them, are in the result's Skipped. It calls the functions of opt and
// w on its thread of low priority.
func Write(ctx context.Context, root *os.Root, w io.Writer, opt Options) (result v1.Snapshot, err error) {
	err = WithPriority(v1.LowPriority, func() (err error) {
		result, err = write(ctx, root, w, opt)
		return err
	})
	return result, err
}

func write(ctx context.Context, root *os.Root, w io.Writer, opt Options) (v1.Snapshot, error) {
	x := &writer{opt: opt, ctx: ctx.Err, buf: make([]byte, copyBytes), names: fsys.Names{Free: opt.NameBytes}}
	x.ignore = Matcher{Rules: ParseRules(opt.Ignore), Most: opt.Bounds.Matching}
	x.result.Skipped, x.members = []v1.Skipped{}, x.member
	err := x.archive(w, func() error {
		return walk(root, fsys.Walker{Check: x.ctx, Visit: x.entry, Within: x.folder, Failed: x.failed, Order: &x.names})
	})
	return x.result, err
}

// archive writes the members that content adds to w, as tar.zst.
func (x *writer) archive(w io.Writer, content func() error) error {
	out := &output{w: w, written: x.opt.Written, hash: sha256.New()}
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	x.tar = tar.NewWriter(z)
	err = content()
	for _, end := range []func() error{x.tar.Close, z.Close, out.report} {
		if err == nil {
			err = end()
		}
	}
	if out.err != nil { // it is the cause of any other error
		err = out.err
	}
	x.result.Size, x.result.Checksum = out.size, checksum(out.hash)
	return err
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
	ignore Matcher
	result v1.Snapshot
	buf    []byte
	sum    hash.Hash // of the contents of files; nil: none is computed

	// members adds a regular file of this header, from its start. failed is io.EOF if it is shorter, or the error of a read.
	members func(f *os.File, h *tar.Header) (failed, err error)

	read     int64      // bytes of files
	apparent int64      // as Bounds.Apparent counts
	holes    int64      // as Bounds.Holes counts
	names    fsys.Names // of files that have several links, and of the folders from the root to the current one
}

// entry adds one entry, except a folder.
func (x *writer) entry(e fsys.Entry) error {
	if err := x.step(); err != nil {
		return err
	}
	p := e.Path()
	ignored, err := x.ignore.Match(p, e.Info.Mode())
	switch {
	case err != nil:
		return err
	case ignored:
		return fs.SkipDir
	case len(p) > maxPath:
		x.skip(p, v1.SkippedUnreadable)
		return fs.SkipDir
	}
	switch e.Info.Mode().Type() {
	case fs.ModeDir:
		return nil
	case 0:
		return x.file(e, p)
	case fs.ModeSymlink:
		return x.symlink(e, p)
	}
	x.skip(p, v1.SkippedSpecial)
	return nil
}

// folder adds a folder, which is open, and its entries.
func (x *writer) folder(e fsys.Entry, entries func() error) error {
	if err := x.add(newHeader(e.Path(), tar.TypeDir, e.Info), block); err != nil {
		return err
	}
	return entries()
}

// failed skips an entry that was removed or replaced since its folder was read, and one that cannot be
// read.
func (x *writer) failed(p string, err error) error {
	switch {
	case errors.Is(err, fsys.ErrTooManyNames):
		return v1.Errorf(v1.SizeLimit, "A folder has too many files for a backup")
	case errors.Is(err, fsys.ErrTooDeep):
		x.skip(p, v1.SkippedUnreadable)
		return nil
	}
	return errors.Join(x.addApparent(block), x.skipFailed(p, err))
}

// step counts an entry, whatever becomes of it. It returns the error of a bound.
func (x *writer) step() error {
	if x.opt.Progress != nil { // also where files are empty
		x.opt.Progress(x.read, x.holes)
	}
	return x.addApparent(block)
}

// addApparent adds n bytes to those that Bounds.Apparent bounds.
func (x *writer) addApparent(n int64) error {
	most := x.opt.Bounds.Apparent
	if most > 0 && n > most-x.apparent {
		return v1.Errorf(v1.SizeLimit, "The volume has too many files, or files with too large holes, "+
			"or grew while it was read: more than %d bytes with holes", most)
	}
	x.apparent += n
	return nil
}

func (x *writer) symlink(e fsys.Entry, p string) error {
	target, err := e.In.Readlink(e.Name)
	if err != nil {
		return x.skipFailed(p, err)
	}
	h := newHeader(p, tar.TypeSymlink, e.Info)
	h.Linkname = target
	return x.add(h, block)
}

// file adds a regular file, or a hard link to one that was added before.
func (x *writer) file(e fsys.Entry, p string) error {
	if to := x.names.First(e.Info); to != "" {
		h := newHeader(p, tar.TypeLink, e.Info)
		h.Linkname = to
		return x.add(h, 0)
	}
	f, err := fsys.OpenRegular(e.In.Root, e.Name, os.O_RDONLY)
	if err != nil {
		return x.skipFailed(p, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return x.skipFailed(p, err)
	}
	h := newHeader(p, tar.TypeReg, info)
	h.Size = info.Size()
	if err := errors.Join(x.addApparent(h.Size), x.ctx()); err != nil {
		return err
	}
	if err := x.countHoles(f, info, p); err != nil {
		return err
	}
	x.names.Add(info, p) // without memory for it, its other links become files of their own
	failed, err := x.members(f, h)
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

// member adds a regular file as one member.
func (x *writer) member(f *os.File, h *tar.Header) (failed, err error) {
	if err := x.add(h, block); err != nil {
		return nil, err
	}
	return x.content(f, h.Size)
}

// countHoles adds the holes of a file to those that Bounds.Holes bounds.
func (x *writer) countHoles(f *os.File, info fs.FileInfo, p string) error {
	holes, err := fsys.Holes(f, info, x.ctx)
	if err != nil {
		return err
	}
	x.holes += holes
	if most := x.opt.Bounds.Holes; most > 0 && x.holes > most {
		return v1.Errorf(v1.SizeLimit,
			"The files have more than %d bytes of holes, too many for a backup: leave out the sparse file %s (ignore)", most, v1.EscapePath(p))
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
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
			if x.sum != nil {
				x.sum.Write(buf)
			}
			_, err = x.tar.Write(buf)
		}
		if err = errors.Join(err, x.ctx()); err != nil {
			return failed, err
		}
		left -= int64(len(buf))
		if x.read += int64(len(buf)); x.opt.Progress != nil {
			x.opt.Progress(x.read, x.holes)
		}
	}
	return failed, nil
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
