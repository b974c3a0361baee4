package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	v1 "berth/api/v1"
)

// maxWindow bounds the memory for decompression, in bytes.
const maxWindow = 8 << 20

// copyBytes is the size of the buffer for contents.
const copyBytes = 256 << 10

// Verify reads the archive a from r to its end. Its error has the code
// v1.InvalidArchive if it is not exactly the one that Write produced. progress is
// called with the bytes of files that were read; it may be nil.
func Verify(ctx context.Context, r io.Reader, a v1.SnapshotArchive, progress func(bytes int64)) error {
	return read(ctx, r, a, progress, discard{})
}

// destination receives the members of an archive, each folder before its entries.
type destination interface {
	// add adds an entry that is no regular file.
	add(e *entry) error
	// file adds a regular file and reads its extents from content to the end.
	file(e *entry, parts []extent, content io.Reader) error
}

// discard is a destination that keeps nothing.
type discard struct{}

func (discard) add(*entry) error { return nil }

func (discard) file(_ *entry, _ []extent, content io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, content, make([]byte, copyBytes))
	return err
}

// reader reads one archive.
type reader struct {
	to       destination
	archive  v1.SnapshotArchive
	progress func(bytes int64)
	src      *source
	in       io.Reader // the tar
	headers  headerReader
	read     int64 // bytes of files

	files, bytes int64     // of the members so far
	hash         *hasher   // of the current member
	derived      hash.Hash // of the manifest that the members result in
	size         int64     // of that manifest
	pad          [blockSize]byte
}

func read(ctx context.Context, r io.Reader, a v1.SnapshotArchive, progress func(int64), to destination) error {
	sum := sha256.New()
	src := &source{r: r, ctxErr: ctx.Err, left: a.Size, hash: sum}
	z, err := zstd.NewReader(src, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	in := stream{z, src}
	x := &reader{to: to, archive: a, progress: progress, src: src, in: in, headers: headerReader{r: in},
		hash: newHasher(), derived: sha256.New()}
	err = x.members()
	x.hash.close()
	z.Close() // before src is read here
	if is(err, io.EOF, io.ErrUnexpectedEOF) {
		err = damaged("it is truncated")
	}
	if failed := src.failed(); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	if n, err := io.Copy(io.Discard, src); n > 0 || err != nil {
		return errors.Join(err, damaged("it goes on after its end"))
	}
	if src.left != 0 {
		return damaged("it is smaller than it was")
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != a.Checksum {
		return damaged("its checksum is %s", got)
	}
	return nil
}

// stream is the tar. Its errors are those of the source, or that the archive is damaged.
type stream struct {
	z   *zstd.Decoder
	src *source
}

func (s stream) Read(p []byte) (int, error) {
	n, err := s.z.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if failed := s.src.failed(); failed != nil {
		return n, failed
	}
	return n, damaged("%v", err)
}

// members reads all members. The first is the root folder, the last the manifest.
func (x *reader) members() error {
	x.derive([]byte(manifestHead))
	for first := true; ; first = false {
		e, err := x.headers.next()
		if errors.Is(err, io.EOF) {
			return damaged("it has no manifest")
		}
		if err != nil {
			return err
		}
		if first != (e.path == rootPath) {
			return damaged("the root folder is not its first member")
		}
		if e.path == ManifestName {
			return x.manifest(&e)
		}
		if !first {
			x.derive([]byte(manifestBetween))
		}
		if err := x.member(&e); err != nil {
			return err
		}
		x.derive(e.line())
	}
}

// derive appends b to the manifest that the members result in.
func (x *reader) derive(b []byte) {
	x.derived.Write(b)
	x.size += int64(len(b))
}

func (x *reader) member(e *entry) error {
	if e.kind != folder {
		x.files++
	}
	if e.kind != file {
		if err := x.count(e); err != nil {
			return err
		}
		return x.to.add(e)
	}
	c := &member{x: x, left: e.stored}
	parts, err := x.extents(c, e)
	if err != nil {
		return err
	}
	e.data = onDisk(parts)
	if err := x.count(e); err != nil {
		return err
	}
	if err := x.to.file(e, parts, c); err != nil {
		return err
	}
	e.sum = x.hash.take()
	return x.padding(e.stored)
}

// extents returns the extents of a file.
func (x *reader) extents(c io.Reader, e *entry) ([]extent, error) {
	switch {
	case e.sparse:
		return readMap(c, e)
	case e.size > 0:
		return []extent{{0, e.size}}, nil
	}
	return nil, nil
}

// count adds the entry to the bytes that the archive extracts to. So an archive never
// extracts to more than Write counted, however little it is compressed to.
func (x *reader) count(e *entry) error {
	if x.bytes += e.onDisk(); x.bytes > x.archive.Bytes || e.data > x.archive.Bytes {
		return damaged("it extracts to more than the %d bytes that it had", x.archive.Bytes)
	}
	return nil
}

// padding reads the zeros after a member's content.
func (x *reader) padding(stored int64) error {
	b := x.pad[:padding(stored)]
	if _, err := io.ReadFull(x.in, b); err != nil {
		return err
	}
	if !isZero(b) {
		return damaged("a member is followed by something else")
	}
	return nil
}

// manifest compares the manifest with the members before it.
func (x *reader) manifest(e *entry) error {
	x.derive(fmt.Appendf(nil, manifestTail, x.files, x.bytes))
	if e.kind != file || e.sparse || e.stored != x.size {
		return damaged("its manifest is that of another archive")
	}
	if err := (discard{}).file(e, nil, &member{x: x, left: e.stored, quiet: true}); err != nil {
		return err
	}
	if sum := x.hash.take(); !bytes.Equal(sum[:], x.derived.Sum(nil)) {
		return damaged("its manifest is that of another archive")
	}
	if x.bytes != x.archive.Bytes {
		return damaged("it extracts to %d bytes, not to the %d that it had", x.bytes, x.archive.Bytes)
	}
	if err := x.padding(e.stored); err != nil {
		return err
	}
	_, err := x.headers.next()
	if err == nil {
		return damaged("it has a member after its manifest")
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// member reads the content of a member and adds it to the hash. What Read returns must
// not be changed before the next call.
type member struct {
	x     *reader
	left  int64
	quiet bool // the content is no progress
}

func (c *member) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	if err := c.x.src.ctxErr(); err != nil {
		return 0, c.x.src.fail(err)
	}
	c.x.hash.wait()
	n, err := c.x.in.Read(p[:min(int64(len(p)), c.left)])
	c.x.hash.add(p[:n])
	c.left -= int64(n)
	if c.x.read += int64(n); c.x.progress != nil && !c.quiet {
		c.x.progress(c.x.read)
	}
	if errors.Is(err, io.EOF) && c.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
