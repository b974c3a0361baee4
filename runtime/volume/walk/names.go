package walk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// nameReader reads the names in an open folder, one block at a time. Unlike package
// os it records the position of each name, so that the folder can be closed,
// opened again and read further.
type nameReader struct {
	next int64  // position after the last name that read returned
	buf  []byte // the rest of the block that was read
	mem  []byte // nil means that the handle's position is not next
}

// Names reads the names in a folder, one after the other, in constant memory. It is
// for one goroutine.
type Names struct {
	dir    *Dir
	reader nameReader
}

// NewNames returns a reader at the first name. The caller closes the folder afterwards.
func NewNames(d *Dir) *Names { return &Names{dir: d} }

// Next returns the next name, or io.EOF.
func (n *Names) Next() (string, error) { return n.reader.read(n.dir) }

// direntBlock is how many bytes of a folder one system call reads.
const direntBlock = 8 << 10

// The layout of linux_dirent64.
const (
	direntOffset = 8
	direntLength = 16
	direntName   = 19
)

// read returns the next name of d, or io.EOF.
func (n *nameReader) read(d *Dir) (string, error) {
	for {
		if len(n.buf) == 0 {
			if err := n.fill(d); err != nil {
				return "", err
			}
		}
		length := int(binary.NativeEndian.Uint16(n.buf[direntLength:]))
		if length < direntName || length > len(n.buf) {
			return "", errors.New("the kernel returned a broken list of names")
		}
		entry := n.buf[:length]
		n.buf = n.buf[length:]
		n.next = int64(binary.NativeEndian.Uint64(entry[direntOffset:]))
		name, _, _ := bytes.Cut(entry[direntName:], []byte{0})
		if s := string(name); s != "." && s != ".." {
			return s, nil
		}
	}
}

func (n *nameReader) fill(d *Dir) error {
	fd := int(d.file.Fd())
	if n.mem == nil {
		if _, err := unix.Seek(fd, n.next, io.SeekStart); err != nil {
			return wrap("seek", d.file.Name(), err)
		}
		n.mem = make([]byte, direntBlock)
	}
	for {
		k, err := unix.Getdents(fd, n.mem)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ENOENT): // the folder itself was removed
			return io.EOF
		case err != nil:
			return wrap("readdir", d.file.Name(), err)
		case k <= 0:
			return io.EOF
		}
		n.buf = n.mem[:k]
		return nil
	}
}

// drop discards the block and keeps the position.
func (n *nameReader) drop() { n.buf, n.mem = nil, nil }
