package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/dsnet/compress/bzip2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// gzipLevel trades size for speed, because a user waits for the archive.
const gzipLevel = 2

// bufferBytes is the size of the buffer through which contents are copied.
const bufferBytes = 256 << 10

// Writer writes one archive. Close completes it and must be called, also after an
// error of Add.
type Writer interface {
	Destination
	Close() error
}

// NewWriter returns a Writer of one of v1.Formats or v1.StreamFormats to w. Entries of regular files
// must have exactly Size bytes of Content. If w fails, Add and Close return its
// first error.
func NewWriter(format string, w io.Writer, limits Limits) (Writer, error) {
	out := &output{w: w}
	switch format {
	case "zip":
		return newZipWriter(out, limits)
	case "tar":
		return newTarWriter(out, newBuffered(out)), nil
	case "tar.gz":
		z, err := gzip.NewWriterLevel(out, gzipLevel)
		return newTarWriter(out, z), err
	case "tar.bz2":
		z, err := bzip2.NewWriter(out, &bzip2.WriterConfig{Level: bzip2.BestCompression})
		return newTarWriter(out, &bzip2Writer{Writer: z, out: out}), err
	case "tar.zst":
		z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		return newTarWriter(out, z), err
	}
	return nil, fmt.Errorf("archive format %q is not supported", format)
}

// output writes the archive, and keeps its first error.
type output struct {
	w   io.Writer
	n   int64 // bytes that were written
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.w.Write(p)
		o.n += int64(n)
	}
	return n, o.err
}

// close closes the writers above the output, the topmost first. It returns the
// first error of the output, or else their errors.
func (o *output) close(above ...io.Closer) (err error) {
	for _, c := range above {
		err = errors.Join(err, c.Close())
	}
	if o.err != nil {
		return o.err
	}
	return err
}

// bzip2Writer begins a new stream after each block. Zeros in one long stream would be compressed
// more than Limits.Ratio permits to extract.
type bzip2Writer struct {
	*bzip2.Writer
	out *output
	n   int // bytes of the current stream
}

// Write implements io.Writer.
func (b *bzip2Writer) Write(p []byte) (int, error) {
	const block = 900_000
	for done := 0; done < len(p); {
		if b.n == block {
			if err := b.Close(); err != nil {
				return done, err
			}
			if err := b.Reset(b.out); err != nil {
				return done, err
			}
			b.n = 0
		}
		n, err := b.Writer.Write(p[done:min(len(p), done+block-b.n)])
		done, b.n = done+n, b.n+n
		if err != nil {
			return done, err
		}
	}
	return len(p), nil
}

// buffered is a bufio.Writer that is flushed by Close.
type buffered struct{ *bufio.Writer }

func newBuffered(w io.Writer) buffered { return buffered{bufio.NewWriterSize(w, bufferBytes)} }

// Close writes the buffered bytes.
func (b buffered) Close() error { return b.Flush() }

// copyContent copies src to its end.
func copyContent(dst io.Writer, src io.Reader, buf []byte) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{dst}, src, buf)
	return err
}
