package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	v1 "berth/api/v1"
)

// ratioFrom is how many bytes any archive may extract to, whatever its size.
const ratioFrom = 64 << 20

// zstdWindow bounds the memory to decompress zstd, in bytes. Levels up to 19 need it.
const zstdWindow = 8 << 20

// Options of Extract.
type Options struct {
	Limits
	Name     string // of the archive; a compressed file that is no tar gets it without its extension
	Encoding string // of names in a zip that are not marked as UTF-8, as IANA names it; empty: IBM437
}

// Extract adds the entries of the archive in the first size bytes of src to dst.
// The names that dst receives are clean; "." is the root folder. The result lists the
// entries that were left out.
func Extract(ctx context.Context, src io.ReaderAt, size int64, opt Options, dst Destination) (v1.Extraction, error) {
	names, err := newDecoder(opt.Encoding)
	if err != nil {
		return v1.Extraction{}, err
	}
	x := &extraction{ctxErr: ctx.Err, opt: opt, limits: opt.Limits, names: names, dst: dst}
	x.src = &source{r: src, size: size, ctxErr: ctx.Err}
	err = x.run()
	return x.result, err
}

// extraction is one call of Extract.
type extraction struct {
	ctxErr  func() error
	src     *source
	opt     Options
	limits  Limits
	names   *decoder
	dst     Destination
	result  v1.Extraction
	entries int
	bytes   int64 // bytes of contents so far
}

// run detects the format by the first bytes, and extracts the archive.
func (x *extraction) run() error {
	head := make([]byte, tarBlock)
	n, err := x.src.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return x.src.cause(err)
	}
	head = head[:n]
	begins := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	stream := bufio.NewReaderSize(x.src, bufferBytes)
	switch {
	case begins("PK\x03\x04"), begins("PK\x05\x06"):
		return x.zip()
	case begins("\x1f\x8b"):
		z, err := gzip.NewReader(stream)
		if err != nil {
			return x.src.cause(err)
		}
		return x.compressed(z, z.ModTime)
	case begins("BZh"):
		return x.compressed(bzip2.NewReader(stream), time.Time{})
	case begins("\x28\xb5\x2f\xfd"):
		z, err := zstd.NewReader(stream, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return x.src.cause(err)
		}
		defer z.Close()
		return x.compressed(z, time.Time{})
	case isTar(head):
		return x.tar(x.bounded(stream))
	}
	const use = "use zip, tar, tar.gz, tar.bz2 or tar.zst"
	for magic, name := range map[string]string{"\xfd7zXZ\x00": "xz", "7z\xbc\xaf\x27\x1c": "7z", "Rar!\x1a\x07": "rar", "\x04\x22\x4d\x18": "lz4"} {
		if begins(magic) {
			return invalid("Archive is in the format %s, which is not supported: %s", name, use)
		}
	}
	return invalid("Not an archive: %s, or a file that is compressed with gzip, bzip2 or zstd", use)
}

// tarBlock is the size of a header of tar, in bytes.
const tarBlock = 512

// isTar reports whether a tar begins with head.
func isTar(head []byte) bool {
	if len(head) < tarBlock {
		return false
	}
	_, err := tar.NewReader(bytes.NewReader(append(head[:tarBlock:tarBlock], make([]byte, 2*tarBlock)...))).Next()
	return err == nil || errors.Is(err, io.EOF) || bytes.HasPrefix(head[257:], []byte("ustar"))
}

// compressed extracts what r decompresses: a tar, or else one file.
func (x *extraction) compressed(r io.Reader, changed time.Time) error {
	all := bufio.NewReaderSize(x.bounded(r), bufferBytes)
	head, err := all.Peek(tarBlock)
	if err != nil && !errors.Is(err, io.EOF) {
		return x.src.cause(err)
	}
	name := plainName(path.Base(x.opt.Name))
	empty := len(bytes.Trim(head, "\x00")) == 0 // an empty tar, or a file that begins with zeros
	if isTar(head) && (!empty || strings.HasSuffix(name, ".tar")) {
		return x.tar(all)
	}
	return x.add(Entry{Name: name, Mode: 0o644, Time: changed}, all)
}

// plainName returns the name of a file without the extension of its compression.
func plainName(name string) string {
	for ext, plain := range map[string]string{".gz": "", ".bz2": "", ".zst": "", ".tgz": ".tar", ".tbz": ".tar", ".tbz2": ".tar", ".tzst": ".tar"} {
		if at := len(name) - len(ext); at > 0 && strings.EqualFold(name[at:], ext) {
			return name[:at] + plain
		}
	}
	return name + ".out"
}

// count counts an entry.
func (x *extraction) count() error {
	if x.entries++; x.entries > x.limits.Entries {
		return x.tooManyEntries()
	}
	return x.ctxErr()
}

// add checks an entry and adds it to the destination. r is the content of a file.
func (x *extraction) add(e Entry, r io.Reader) error {
	if err := x.count(); err != nil {
		return err
	}
	if err := checkName(e.Name, x.limits.Depth); err != nil {
		return err
	}
	e.Name = path.Clean(e.Name)
	if e.HardLink {
		if err := checkName(e.Target, x.limits.Depth); err != nil {
			return err
		}
		if e.Target = path.Clean(e.Target); x.wasSkipped(e.Target) {
			x.list(e.Name, v1.SkippedLink)
			return nil
		}
	}
	if e.Mode.IsRegular() && !e.HardLink {
		e.Content = &contentReader{x: x, r: r, size: e.Size}
	}
	err := x.dst.Add(e)
	if errors.Is(err, ErrSkippedLink) {
		x.list(e.Name, v1.SkippedLink)
		return nil
	}
	return err
}

// skip counts an entry that is left out, and lists the first ones.
func (x *extraction) skip(name, reason string) error {
	if err := x.count(); err != nil {
		return err
	}
	x.list(name, reason)
	return nil
}

func (x *extraction) list(name, reason string) {
	x.result.SkippedTotal++
	if len(x.result.Skipped) < v1.MaxSkippedEntries {
		x.result.Skipped = append(x.result.Skipped, v1.Skipped{Path: v1.EscapePath(name), Reason: reason})
	}
}

// wasSkipped reports whether the list has an entry. A hard link to it cannot be created either.
func (x *extraction) wasSkipped(name string) bool {
	name = v1.EscapePath(name)
	return slices.ContainsFunc(x.result.Skipped, func(s v1.Skipped) bool { return s.Path == name })
}

func (x *extraction) tooManyEntries() error {
	return v1.Errorf(v1.SizeLimit, "Archive has more than %d entries", x.limits.Entries)
}

func (x *extraction) tooManyBytes() error {
	return v1.Errorf(v1.SizeLimit, "Archive extracts to more than %d bytes", x.limits.Bytes)
}

// checkRatio returns an error if n bytes are too many for the size of the archive.
func (x *extraction) checkRatio(n int64) error {
	if n > ratioFrom && n/x.limits.Ratio > x.src.size {
		return v1.Errorf(v1.SizeLimit, "Archive extracts to more than %d times its size", x.limits.Ratio)
	}
	return nil
}

// checkName refuses names that leave the destination, on Linux or on Windows, where
// a backslash separates components and drives have letters.
func checkName(name string, depth int) error {
	slashed := strings.ReplaceAll(name, `\`, "/")
	drive := len(slashed) > 2 && slashed[1:3] == ":/"
	if name == "" || len(name) > v1.MaxPath || slashed[0] == '/' || drive || strings.ContainsRune(name, 0) {
		return v1.ErrInvalidPath
	}
	levels := 0
	for part := range strings.SplitSeq(slashed, "/") {
		levels++
		if part == ".." {
			return v1.ErrInvalidPath
		}
		if len(part) > v1.MaxComponent {
			return v1.ErrNameTooLong
		}
	}
	if levels > depth {
		return v1.Errorf(v1.SizeLimit, "Archive nests folders more than %d deep", depth)
	}
	return nil
}

// folderName returns the name of a folder with the slash that marks it in an
// archive.
func folderName(name string) string { return strings.TrimSuffix(name, "/") + "/" }

// contentReader reads the content of one file within the limits of the archive.
type contentReader struct {
	x    *extraction
	r    io.Reader
	size int64 // bytes, as the archive states
	n    int64 // bytes that were read
}

func (c *contentReader) Read(p []byte) (int, error) {
	if err := c.x.ctxErr(); err != nil {
		return 0, err
	}
	if c.n == 0 && c.size > c.x.limits.Bytes-c.x.bytes {
		return 0, c.x.tooManyBytes()
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.x.bytes += int64(n); c.x.bytes > c.x.limits.Bytes {
		return n, c.x.tooManyBytes()
	}
	if refused := c.x.checkRatio(c.x.bytes); refused != nil {
		return n, refused
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, c.x.src.cause(err)
}
