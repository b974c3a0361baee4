package snapshot

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxExtents bounds the memory for the extents of a file. The rest of a file that has
// more is stored with its holes as zeros.
const maxExtents = 1 << 20

// extents returns the parts of f, up to size, that have data. holes reports whether
// there is anything between them.
func extents(f *os.File, size int64) (parts []extent, holes bool) {
	for off := int64(0); off < size; {
		begin, err := f.Seek(off, unix.SEEK_DATA)
		if errors.Is(err, syscall.ENXIO) || err == nil && begin >= size {
			return parts, true // a hole up to the end
		}
		end := size
		if err != nil || len(parts) == maxExtents-1 {
			begin = off
		} else if end, err = f.Seek(begin, unix.SEEK_HOLE); err != nil {
			end = size
		}
		end = max(min(end, size), begin+1) // a file that changes meanwhile must not stop the loop
		holes = holes || begin > off
		parts, off = join(parts, extent{begin, end - begin}), end
	}
	return parts, holes
}

// join appends p, to the last extent if no hole is between them.
func join(parts []extent, p extent) []extent {
	if n := len(parts); n > 0 && parts[n-1].off+parts[n-1].n == p.off {
		parts[n-1].n += p.n
		return parts
	}
	return append(parts, p)
}

// mapSize returns the size of the map of a sparse file, in bytes.
func mapSize(parts []extent) int64 {
	n := int64(len(strconv.Itoa(len(parts))) + 1)
	for _, p := range parts {
		n += int64(len(strconv.FormatInt(p.off, 10)) + len(strconv.FormatInt(p.n, 10)) + 2)
	}
	return n + padding(n)
}

// appendMapLine appends one number of a map.
func appendMapLine(b []byte, n int64) []byte { return append(strconv.AppendInt(b, n, 10), '\n') }

// writeMap writes the map of a sparse file: the number of extents, and the offset and
// the length of each.
func writeMap(w io.Writer, parts []extent) error {
	out := bufio.NewWriter(w)
	var line []byte
	total := int64(0)
	put := func(n int64) error {
		line = appendMapLine(line[:0], n)
		total += int64(len(line))
		_, err := out.Write(line)
		return err
	}
	err := put(int64(len(parts)))
	for _, p := range parts {
		err = errors.Join(err, put(p.off), put(p.n))
	}
	if err != nil {
		return err
	}
	if _, err := out.Write(make([]byte, padding(total))); err != nil {
		return err
	}
	return out.Flush()
}

// withEnd returns the extents as the map has them: if a hole ends the file, an empty
// extent at the end marks its size.
func withEnd(parts []extent, size int64) []extent {
	if n := len(parts); n == 0 || parts[n-1].off+parts[n-1].n < size {
		return append(parts, extent{size, 0})
	}
	return parts
}

// readMap reads the map of e from its content and returns the extents. It refuses one
// that writeMap does not produce for the entry's sizes.
func readMap(r io.Reader, e *entry) ([]extent, error) {
	m := mapReader{r: r, left: e.stored}
	count, err := m.number()
	if err != nil {
		return nil, err
	}
	if count < 1 || count > maxExtents+1 || count > e.stored {
		return nil, badMap(e)
	}
	var parts []extent
	var end, data int64
	for range count {
		p := extent{}
		if p.off, err = m.number(); err == nil {
			p.n, err = m.number()
		}
		if err != nil {
			return nil, err
		}
		last := int64(len(parts)) == count-1
		if p.off < end || p.n > e.size-p.off || p.n == 0 && (!last || p.off != e.size) || p.n > 0 && p.off == end && end > 0 {
			return nil, badMap(e)
		}
		end, data = p.off+p.n, data+p.n
		parts = append(parts, p)
	}
	if err := m.rest(); err != nil {
		return nil, err
	}
	if end != e.size || mapSize(parts)+data != e.stored || m.read != mapSize(parts) {
		return nil, badMap(e)
	}
	return parts, nil
}

func badMap(e *entry) error { return damaged("the map of %q is not valid", shorten(e.path)) }

// mapReader reads the numbers of a map, block by block.
type mapReader struct {
	r    io.Reader
	left int64 // bytes of the member
	read int64
	buf  []byte
	mem  [blockSize]byte
}

func (m *mapReader) number() (n int64, err error) {
	for digits := 0; ; digits++ {
		c, err := m.byte()
		if err != nil {
			return 0, err
		}
		if c == '\n' && digits > 0 {
			return n, nil
		}
		n = n*10 + int64(c-'0')
		if c < '0' || c > '9' || n < 0 || digits == 19 || digits > 0 && n < 10 {
			return 0, damaged("the map of a sparse file is not valid")
		}
	}
}

func (m *mapReader) byte() (byte, error) {
	if len(m.buf) == 0 {
		if m.left < blockSize {
			return 0, damaged("the map of a sparse file is not valid")
		}
		if _, err := io.ReadFull(m.r, m.mem[:]); err != nil {
			return 0, err
		}
		m.left, m.read, m.buf = m.left-blockSize, m.read+blockSize, m.mem[:]
	}
	c := m.buf[0]
	m.buf = m.buf[1:]
	return c, nil
}

// rest checks the zeros after the last number.
func (m *mapReader) rest() error {
	if !isZero(m.buf) {
		return damaged("the map of a sparse file is not valid")
	}
	return nil
}
