package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// maxWindow bounds the memory for decompression, in bytes.
const maxWindow = 8 << 20

// ExtractOptions are the options of Extract.
type ExtractOptions struct {
	// Reserve is called before so many bytes are written. It may be nil.
	Reserve func(bytes int64) error
	// Progress is called with the bytes of files that were extracted so far. It may be nil.
	Progress func(bytes int64)
	// Paths selects entries, with all below them; empty: all. The folders above them are extracted too.
	Paths Paths
	// Priority is that of Receive.
	Priority v1.Priority
}

func (o ExtractOptions) reserve(n int64) error {
	if o.Reserve == nil || n == 0 {
		return nil
	}
	return o.Reserve(n)
}

// Extract extracts the archive a from r into the empty folder into, which nobody else may
// change. Its error has the code v1.InvalidArchive if r is not exactly the archive that Write
// produced, which is certain only at the end, and v1.PathNotFound if it has not each of opt.Paths. After an error the
// folder holds a part of the tree. What it holds is not durable yet.
func Extract(ctx context.Context, r io.Reader, a v1.SnapshotArchive, into *os.Root, opt ExtractOptions) error {
	x, err := newExtractor(ctx, r, a, into, opt)
	if err != nil {
		return err
	}
	defer x.close()
	if err := x.members(); err != nil {
		return err
	}
	if x.src.left != 0 {
		return damaged("it is smaller than it was")
	}
	if got := checksum(x.src.hash); got != a.Checksum {
		return damaged("its checksum is %s", got)
	}
	for _, p := range opt.Paths {
		if !x.found[p] {
			return v1.Errorf(v1.PathNotFound, "Backup does not have the path: %s", shorten(v1.EscapePath(p)))
		}
	}
	return x.leaveAll()
}

// newExtractor returns an extractor of the archive a into the folder into.
func newExtractor(ctx context.Context, r io.Reader, a v1.SnapshotArchive, into *os.Root, opt ExtractOptions) (*extractor, error) {
	src, z, err := openSource(ctx, r, a)
	if err != nil {
		return nil, err
	}
	top, err := fsys.NewFolder(into.OpenRoot(rootPath))
	if err != nil {
		z.Close()
		return nil, err
	}
	return &extractor{opt: opt, src: src, z: z, tar: tar.NewReader(z), most: a.Bytes, buf: make([]byte, copyBytes), found: map[string]bool{},
		at: []level{{Folder: top, path: rootPath}}}, nil
}

// openSource returns a reader of the tar of an archive, and the source that it reads.
func openSource(ctx context.Context, r io.Reader, a v1.SnapshotArchive) (*source, *zstd.Decoder, error) {
	src := &source{r: r, ctx: ctx.Err, left: a.Size, hash: sha256.New()}
	z, err := zstd.NewReader(src, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	return src, z, err
}

// source reads the archive until the context ends, and no more than a number of bytes.
// It keeps its first error, so that a failed read is not reported as a damaged archive.
type source struct {
	r    io.Reader
	ctx  func() error // the error of the context
	left int64        // bytes that the archive may still have
	hash hash.Hash
	err  error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (n int, err error) {
	if err = s.ctx(); err == nil {
		n, err = s.r.Read(p)
	}
	s.hash.Write(p[:n])
	if s.left -= int64(n); s.left < 0 {
		err = damaged("it is larger than it was")
	}
	if err != nil && !errors.Is(err, io.EOF) && s.err == nil {
		s.err = err
	}
	return n, err
}

// extractor extracts one archive.
type extractor struct {
	opt   ExtractOptions
	found map[string]bool // of opt.Paths
	src   *source
	z     *zstd.Decoder
	tar   *tar.Reader
	at    []level // the folders from the root of the tree to the current one
	read  int64   // bytes of files
	bytes int64   // on disk, so far
	most  int64   // on disk, of the complete tree
	buf   []byte

	received *received // of Receive; nil: of Extract
}

// level is a folder that is not complete.
type level struct {
	*fsys.Folder
	path string
	attributes
}

// attributes are what a folder gets when it is complete: new entries change its time.
type attributes struct {
	mode     uint32
	uid, gid int
	time     time.Time
}

func attributesOf(h *tar.Header) attributes {
	return attributes{uint32(h.Mode) & 0o7777, h.Uid, h.Gid, h.ModTime}
}

// close closes the folders that are open.
func (x *extractor) close() {
	for _, l := range x.at {
		l.Close()
	}
	x.z.Close()
}

// readError returns why the archive cannot be read: the error of the source, or that it is
// damaged.
func (s *source) readError(err error) error {
	switch {
	case s.err != nil:
		return s.err
	case fsys.Is(err, io.EOF, io.ErrUnexpectedEOF):
		return damaged("it is truncated")
	}
	return damaged("%v", err)
}

// members extracts all members. The first is the root folder.
func (x *extractor) members() error {
	for first := true; ; first = false {
		h, err := x.tar.Next()
		if errors.Is(err, io.EOF) {
			return x.end()
		}
		if err != nil {
			return x.src.readError(err)
		}
		if is, err := x.receivedRecord(h); is || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		switch err := checkHeader(h); {
		case err != nil:
			return err
		case first != (h.Name == rootPath):
			return damaged("the root folder is not its first member")
		case !x.selects(h):
			continue
		}
		if err := x.member(h); err != nil {
			return err
		}
	}
}

// end returns an error unless the archive ends behind its last member.
func (x *extractor) end() error {
	switch n, err := io.ReadFull(x.z, x.buf[:1]); {
	case n > 0:
		return damaged("it goes on after its end")
	case !errors.Is(err, io.EOF):
		return x.src.readError(err)
	}
	return nil
}

// selects reports whether a member is extracted.
func (x *extractor) selects(h *tar.Header) bool {
	if len(x.opt.Paths) == 0 {
		return true
	}
	below := x.opt.Paths.of(h.Name)
	for _, p := range below {
		x.found[p] = true
	}
	return len(below) > 0 || h.Typeflag == tar.TypeDir && x.opt.Paths.Above(h.Name)
}

func (x *extractor) member(h *tar.Header) error {
	in, name, err := x.enter(h)
	if err != nil {
		return err
	}
	if h.Typeflag != tar.TypeLink {
		if err := x.count(block); err != nil {
			return err
		}
	}
	switch {
	case h.Name == rootPath:
		x.at[0].attributes = attributesOf(h)
		return nil
	case h.Typeflag == tar.TypeDir:
		return x.folder(in, name, h)
	case h.Typeflag == tar.TypeSymlink:
		return x.symlink(in, name, h)
	case h.Typeflag == tar.TypeLink:
		return x.hardLink(in, name, h)
	}
	return x.file(in, name, h)
}

// enter leaves folders until the current one is that of h.
func (x *extractor) enter(h *tar.Header) (in *fsys.Folder, name string, err error) {
	up := path.Dir(h.Name)
	for x.at[len(x.at)-1].path != up {
		if len(x.at) == 1 {
			return nil, "", damaged("%q is not in a folder before it", shorten(h.Name))
		}
		if err := x.leave(); err != nil {
			return nil, "", err
		}
	}
	return x.at[len(x.at)-1].Folder, path.Base(h.Name), nil
}

// count adds bytes on disk and reserves them. So an archive never extracts to more than Write
// counted, however little it is compressed to.
func (x *extractor) count(n int64) error {
	if x.bytes += n; x.bytes > x.most {
		return damaged("it extracts to more than the %d bytes that it had", x.most)
	}
	return x.opt.reserve(n)
}

// duplicate returns the refusal of an entry whose name is taken.
func duplicate(h *tar.Header, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return damaged("it has %q twice", shorten(h.Name))
	}
	return err
}

// folder creates a folder and enters it. It gets its attributes when it is left.
func (x *extractor) folder(in *fsys.Folder, name string, h *tar.Header) error {
	if len(x.at) > maxDepth {
		return damaged("its folders are nested deeper than %d", maxDepth)
	}
	sub, err := in.MakeFolder(name)
	if x.received != nil && errors.Is(err, fs.ErrExist) {
		sub, err = enterOrReplace(in, name)
	}
	if err != nil {
		return duplicate(h, err)
	}
	x.at = append(x.at, level{sub, h.Name, attributesOf(h)})
	return nil
}

// leave completes the current folder and goes to its parent.
func (x *extractor) leave() error {
	last := len(x.at) - 1
	l := x.at[last]
	if err := own(l.File, l.attributes); err != nil {
		return err
	}
	if err := l.Chtimes(rootPath, time.Time{}, l.time); err != nil {
		return err
	}
	x.at = x.at[:last]
	return l.Close()
}

// leaveAll leaves all folders, the root of the tree included.
func (x *extractor) leaveAll() (err error) {
	for len(x.at) > 0 && err == nil {
		err = x.leave()
	}
	return err
}

// own sets the owner and the mode of an open file. The mode comes last: a new owner
// resets some of its bits.
func own(f *os.File, a attributes) error {
	if err := ignoreRefused(f.Chown(a.uid, a.gid)); err != nil {
		return err
	}
	return os.NewSyscallError("fchmod", unix.Fchmod(int(f.Fd()), a.mode))
}

// ignoreRefused ignores that only root may change owners.
func ignoreRefused(err error) error {
	if os.Geteuid() != 0 && errors.Is(err, syscall.EPERM) {
		return nil
	}
	return err
}

func (x *extractor) symlink(in *fsys.Folder, name string, h *tar.Header) error {
	name, place := x.place(in, name)
	if err := in.Symlink(h.Linkname, name); err != nil {
		return duplicate(h, err)
	}
	if err := ignoreRefused(in.Lchown(name, h.Uid, h.Gid)); err != nil {
		return err
	}
	return errors.Join(in.SetTime(name, h.ModTime), place())
}

// hardLink links to a file that was extracted before.
func (x *extractor) hardLink(in *fsys.Folder, name string, h *tar.Header) error {
	tree := x.at[0]
	if len(x.opt.Paths) > 0 && len(x.opt.Paths.of(h.Linkname)) == 0 {
		return v1.Errorf(v1.InvalidRequest, "%s is a hard link of %s: restore that one with it", shorten(v1.EscapePath(h.Name)),
			shorten(v1.EscapePath(h.Linkname)))
	}
	info, err := tree.Lstat(h.Linkname)
	if err == nil && !info.Mode().IsRegular() {
		err = syscall.ENOENT
	}
	if fsys.Escapes(err) || fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR, syscall.ELOOP) {
		return damaged("the hard link %q leads to %q, which is no file before it", shorten(h.Name), shorten(h.Linkname))
	}
	if err != nil {
		return err
	}
	if x.received == nil {
		return duplicate(h, tree.Link(h.Linkname, h.Name))
	}
	temp, place := x.place(in, name)
	if err := tree.Link(h.Linkname, path.Join(path.Dir(h.Name), temp)); err != nil {
		return err
	}
	return place()
}

// file creates a regular file.
func (x *extractor) file(in *fsys.Folder, name string, h *tar.Header) error {
	if off := h.PAXRecords[offsetRecord]; off != "" && x.received != nil {
		return x.part(in, name, h, off)
	}
	name, place := x.place(in, name)
	f, err := in.CreateNew(name)
	if err != nil {
		return duplicate(h, err)
	}
	defer f.Close()
	if err := x.content(f, 0, h.Size); err != nil {
		return err
	}
	if err := errors.Join(own(f, attributesOf(h)), f.Close()); err != nil {
		return err
	}
	if err := in.Chtimes(name, h.AccessTime, h.ModTime); err != nil {
		return err
	}
	return x.finish(place)
}

// content writes the content of the current member from an offset of a file that ends there, except blocks of zeros.
func (x *extractor) content(f *os.File, off, size int64) error {
	var disk onDisk
	end := off // of what was written
	size += off
	for off < size {
		buf := x.buf[:min(int64(len(x.buf)), size-off)]
		if _, err := io.ReadFull(x.tar, buf); err != nil {
			return x.src.readError(err)
		}
		if x.received != nil {
			x.received.sum.Write(buf)
		}
		err := EachRun(buf, func(from, to int) error {
			if err := x.count(disk.add(to - from)); err != nil {
				return err
			}
			end = off + int64(to)
			_, err := f.WriteAt(buf[from:to], off+int64(from))
			return err
		})
		if err != nil {
			return err
		}
		off += int64(len(buf))
		if x.read += int64(len(buf)); x.opt.Progress != nil {
			x.opt.Progress(x.read)
		}
	}
	if end < size {
		return f.Truncate(size)
	}
	return nil
}
