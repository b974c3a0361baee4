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
	"strings"
	"time"

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
	Name     string // of the archive; a compressed file that is no tar gets it without its extension. Empty: such a file is refused
	Format   string // that the archive must have, one of v1.StreamFormats; empty: any
	Encoding string // of names in a zip that are not marked as UTF-8, as IANA names it; empty: IBM437

	// Spool keeps an archive that arrives, and returns it and its size. ExtractStream calls it for a zip, whose
	// directory is at its end.
	Spool func(io.Reader) (io.ReaderAt, int64, error)
}

// Extract adds the entries of the archive in the first size bytes of src to dst.
// The names that dst receives are clean; "." is the root folder. The result lists the
// entries that were left out.
func Extract(ctx context.Context, src io.ReaderAt, size int64, opt Options, dst Destination) (v1.Extraction, error) {
	return extract(&source{r: io.NewSectionReader(src, 0, size), whole: src, size: size, ctxErr: ctx.Err}, opt, dst)
}

// ExtractStream is Extract for an archive that arrives: it reads src once, to its end. The compression ratio is
// that of what has arrived.
func ExtractStream(ctx context.Context, src io.Reader, opt Options, dst Destination) (v1.Extraction, error) {
	return extract(&source{r: src, ctxErr: ctx.Err}, opt, dst)
}

func extract(src *source, opt Options, dst Destination) (v1.Extraction, error) {
	names, err := newDecoder(opt.Encoding)
	if err != nil {
		return v1.Extraction{}, err
	}
	x := &extraction{ctxErr: src.ctxErr, src: src, opt: opt, limits: opt.Limits, names: names, dst: dst}
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
	stream := bufio.NewReaderSize(x.src, bufferBytes)
	head, err := stream.Peek(tarBlock)
	if err != nil && !errors.Is(err, io.EOF) {
		return x.src.cause(err)
	}
	found := formatOf(head)
	if want := x.opt.Format; want != "" && want != found {
		return invalid("Archive is not in the format %s, which was announced", want)
	}
	switch found {
	case "zip":
		return x.zip(stream)
	case "tar.gz":
		return x.gzip(stream)
	case "tar.bz2":
		return x.compressed(bzip2.NewReader(stream), time.Time{})
	case "tar.zst":
		z, err := zstd.NewReader(stream, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return x.src.cause(err)
		}
		defer z.Close()
		return x.compressed(z, time.Time{})
	case "tar":
		return x.tar(x.bounded(stream))
	}
	const use = "use zip, tar, tar.gz, tar.bz2 or tar.zst"
	if found != "" {
		return invalid("Archive is in the format %s, which is not supported: %s", found, use)
	}
	return invalid("Not an archive: %s, or a file that is compressed with gzip, bzip2 or zstd", use)
}

// formatOf returns the format of an archive that begins with head; empty: it is none. A compressed file may
// be another one than a tar.
func formatOf(head []byte) string {
	for magic, format := range map[string]string{
		"PK\x03\x04": "zip", "PK\x05\x06": "zip", "\x1f\x8b": "tar.gz", "BZh": "tar.bz2", "\x28\xb5\x2f\xfd": "tar.zst",
		"\xfd7zXZ\x00": "xz", "7z\xbc\xaf\x27\x1c": "7z", "Rar!\x1a\x07": "rar", "\x04\x22\x4d\x18": "lz4",
	} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return format
		}
	}
	if isTar(head) {
		return "tar"
	}
	return ""
}

// TypeOf returns the media type of an archive or a compressed file that begins with head, of at least 512 bytes if it
// has as many; empty: it is none.
func TypeOf(head []byte) string {
	format := formatOf(head)
	if format == "tar" && len(bytes.Trim(head, "\x00")) == 0 { // of zeros nothing is known
		return ""
	}
	return map[string]string{"zip": "application/zip", "tar": "application/x-tar", "tar.gz": "application/gzip",
		"tar.bz2": "application/x-bzip2", "tar.zst": "application/zstd", "xz": "application/x-xz",
		"7z": "application/x-7z-compressed", "rar": "application/vnd.rar", "lz4": "application/x-lz4"}[format]
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
	if isTar(head) && (!empty || x.opt.Name == "" || strings.HasSuffix(name, ".tar")) {
		return x.tar(all)
	}
	if x.opt.Name == "" {
		return x.src.cause(invalid("Not an archive: a compressed file that is no tar"))
	}
	return x.add(Entry{Name: name, Mode: 0o644, Time: changed}, all)
}

// plainName returns the name of a file without the extension of its compression.
func plainName(name string) string {
	for ext, plain := range map[string]string{".gz": "", ".bz2": "", ".zst": "", ".tgz": ".tar", ".tbz": ".tar",
		".tbz2": ".tar", ".tzst": ".tar"} {
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
	err := cleanName(&e.Name, x.limits.Depth)
	if err == nil && e.HardLink {
		err = cleanName(&e.Target, x.limits.Depth)
	}
	if err != nil {
		return err
	}
	if e.Mode.IsRegular() && !e.HardLink {
		e.Content = &contentReader{x: x, r: r, size: e.Size}
	}
	switch err := x.dst.Add(e); {
	case errors.Is(err, ErrNoTarget) && x.result.SkippedTotal == 0:
		return invalid("Archive has a hard link to a file that it does not contain: %q", e.Target)
	case errors.Is(err, ErrNoTarget), errors.Is(err, ErrSkippedLink): // its target may be one of those that were skipped
		x.list(e.Name, v1.SkippedLink)
		return nil
	default:
		return err
	}
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

// cleanName cleans a name of an archive. An absolute one is relative to the destination.
func cleanName(name *string, depth int) error {
	relative := strings.TrimLeft(*name, "/")
	if *name == "" {
		return v1.ErrInvalidPath
	}
	if relative == "" {
		relative = "."
	}
	*name = path.Clean(relative)
	return checkName(relative, depth)
}

// checkName refuses names that leave the destination, on Linux or on Windows, where
// a backslash separates components and drives have letters.
func checkName(name string, depth int) error {
	slashed := strings.ReplaceAll(name, `\`, "/")
	drive := len(slashed) > 2 && slashed[1:3] == ":/"
	if len(name) > v1.MaxPath || slashed[0] == '/' || drive || strings.ContainsRune(name, 0) {
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
