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

	"github.com/klauspost/pgzip"

	v1 "berth/api/v1"
)

// ratioFrom is how many bytes any archive may extract to, whatever its size.
const ratioFrom = 64 << 20

// Extract adds the entries of the archive in the first size bytes of src to dst.
// The names that dst receives are clean; "." is the root folder.
func Extract(ctx context.Context, src io.ReaderAt, size int64, limits Limits, dst Destination) error {
	x := &extraction{ctxErr: ctx.Err, limits: limits, dst: dst}
	x.src = &source{r: src, size: size, ctxErr: ctx.Err}
	stream := bufio.NewReaderSize(x.src, bufferBytes)
	head := make([]byte, 512)
	n, err := src.ReadAt(head[:min(size, 512)], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return x.zip()
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return x.gzip(stream)
	case bytes.HasPrefix(head, []byte("BZh")):
		return x.tar(bzip2.NewReader(stream))
	case len(head) == 512 && (bytes.HasPrefix(head[257:], []byte("ustar")) || isOldTar(head)):
		return x.tar(stream)
	}
	return invalid("Not an archive: the format must be zip, tar, tar.gz or tar.bz2")
}

// isOldTar reports whether a block without a magic number is a tar header.
func isOldTar(head []byte) bool {
	_, err := tar.NewReader(bytes.NewReader(append(head[:512:512], make([]byte, 1024)...))).Next()
	return err == nil || errors.Is(err, io.EOF)
}

// extraction is one call of Extract.
type extraction struct {
	ctxErr  func() error
	src     *source
	limits  Limits
	dst     Destination
	entries int
	bytes   int64 // bytes of contents so far
}

func (x *extraction) gzip(r io.Reader) error {
	z, err := pgzip.NewReader(r)
	if err != nil {
		return x.src.cause(err)
	}
	defer z.Close()
	return x.tar(z)
}

// add checks an entry and adds it to the destination. r is the content of a file.
func (x *extraction) add(e Entry, r io.Reader) error {
	if x.entries++; x.entries > x.limits.Entries {
		return x.tooManyEntries()
	}
	if err := x.ctxErr(); err != nil {
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
		e.Target = path.Clean(e.Target)
	}
	if e.Mode.IsRegular() && !e.HardLink {
		e.Content = &contentReader{x: x, r: r, size: e.Size}
	}
	return x.dst.Add(e)
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
		if part == ".." || len(part) > v1.MaxComponent {
			return v1.ErrInvalidPath
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
