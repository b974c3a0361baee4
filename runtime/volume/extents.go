package volume

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// extent returns the part of a file, up to size, that is the first with data at or after pos; it is
// empty if there is none. A file system without holes has one extent.
func extent(file *os.File, pos, size int64) (begin, end int64) {
	begin, err := file.Seek(pos, unix.SEEK_DATA)
	switch {
	case errors.Is(err, syscall.ENXIO): // holes up to the end
		return size, size
	case err != nil:
		return pos, size
	}
	if end, err = file.Seek(begin, unix.SEEK_HOLE); err != nil {
		end = size
	}
	return min(begin, size), min(end, size)
}

// eachExtent calls f for the parts of file, up to size, that have data; between them
// are holes. A part has at most 64 MiB, so that f can check its context often.
func eachExtent(file *os.File, size int64, f func(off, n int64) error) error {
	const most = 64 << 20
	for off := int64(0); off < size; {
		begin, end := extent(file, off, size)
		for ; begin < end; begin += most {
			if err := f(begin, min(end-begin, most)); err != nil {
				return err
			}
		}
		off = max(end, off+1)
	}
	return nil
}

// holeReader reads a file by its extents and returns zeros for holes without reading
// the disk. It returns exactly size bytes: a file that shrinks meanwhile ends with
// zeros, and one that grows is cut.
type holeReader struct {
	file   *os.File
	ctxErr func() error
	pos    int64
	size   int64
	data   int64 // start of the extent at or after pos
	stop   int64 // end of that extent

	holes, maxHoles int64 // bytes of holes so far, and their bound
}

func (h *holeReader) Read(p []byte) (int, error) {
	if err := h.ctxErr(); err != nil {
		return 0, err
	}
	if h.pos >= h.size {
		return 0, io.EOF
	}
	if h.pos >= h.stop {
		h.data, h.stop = extent(h.file, h.pos, h.size)
		if h.holes += h.data - h.pos; h.holes > h.maxHoles {
			return 0, errHoles
		}
	}
	p = p[:min(int64(len(p)), h.size-h.pos)]
	if h.pos < h.data {
		p = p[:min(int64(len(p)), h.data-h.pos)]
		clear(p)
		h.pos += int64(len(p))
		return len(p), nil
	}
	p = p[:min(int64(len(p)), h.stop-h.pos)]
	n, err := h.file.ReadAt(p, h.pos)
	if errors.Is(err, io.EOF) {
		clear(p[n:])
		n, err = len(p), nil
	}
	h.pos += int64(n)
	return n, err
}

// errHoles reports a file whose holes would take long to write as zeros.
var errHoles = errors.New("too many bytes of holes")
