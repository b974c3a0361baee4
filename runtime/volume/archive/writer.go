package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/pgzip"
)

// gzipLevel trades size for speed, because a user waits for the archive.
const gzipLevel = 2

// gzipBlock is how many bytes one goroutine compresses at a time. Two more blocks
// than cores are in flight, so that no core waits while a file is opened or the
// disk is slow.
const gzipBlock = 1 << 20

// bufferBytes is the size of the buffer through which contents are copied.
const bufferBytes = 256 << 10

// Writer writes one archive. Close completes it and must be called, also after an
// error of Add.
type Writer interface {
	Destination
	Close() error
}

// NewWriter returns a Writer of one of v1.Formats to w. Entries of regular files
// must have exactly Size bytes of Content. If w fails, Add and Close return its
// first error.
func NewWriter(format string, w io.Writer, limits Limits) (Writer, error) {
	out := &output{w: w}
	switch format {
	case "zip":
		return newZipWriter(out, limits.ZipDirectoryBytes), nil
	case "tar":
		return newTarWriter(out, newBuffered(out)), nil
	case "tar.bz2":
		return newTarWriter(out, newBzip2(out)), nil
	case "tar.gz":
	default:
		return nil, fmt.Errorf("archive format %q is not supported", format)
	}
	z, err := pgzip.NewWriterLevel(out, gzipLevel)
	if err == nil {
		err = z.SetConcurrency(gzipBlock, runtime.GOMAXPROCS(0)+2)
	}
	if err != nil {
		return nil, err
	}
	return newTarWriter(out, z), nil
}

// output writes the archive. After its first error it discards what is written,
// because a compressor that receives an error leaks its goroutines. Compressors
// write from goroutines of their own.
type output struct {
	w io.Writer

	mu  sync.Mutex
	n   int64 // bytes
	err error
}

func (o *output) Write(p []byte) (int, error) {
	err := o.failed()
	if err == nil {
		_, err = o.w.Write(p)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n, o.err = o.n+int64(len(p)), err
	return len(p), nil
}

// failed returns the first error.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// written returns how many bytes were written.
func (o *output) written() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// close closes the writers above the output, the topmost first. It returns the
// first error of the output, or else their errors.
func (o *output) close(above ...io.Closer) (err error) {
	for _, c := range above {
		err = errors.Join(err, c.Close())
	}
	if failed := o.failed(); failed != nil {
		return failed
	}
	return err
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
