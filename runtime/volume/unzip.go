package volume

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/klauspost/compress/flate"

	v1 "berth/api/v1"
)

// zip extracts a zip, entry by entry as its directory lists them.
func (u *extractor) zip() error {
	dir, err := openZip(u.src, u.src.size)
	if err != nil {
		return u.src.readError(err)
	}
	z := zipReader{u: u, dir: dir, inflate: flate.NewReader(nil)}
	for {
		f, err := dir.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return u.src.readError(err)
		}
		if err := z.add(f); err != nil {
			return err
		}
	}
}

// zipReader reads the content of one entry after another.
type zipReader struct {
	u       *extractor
	dir     *zipDir
	inflate io.ReadCloser
}

func (z *zipReader) add(f zipFile) error {
	e := extractedEntry{name: f.name, mode: f.mode, time: f.time, size: f.raw}
	if e.mode&fs.ModeIrregular != 0 {
		return invalidArchive("Archive has an entry that is no file, folder or link: %q", f.name)
	}
	if e.mode.IsDir() {
		return z.u.add(e)
	}
	content, err := z.content(f)
	if err != nil {
		return z.u.src.readError(err)
	}
	if e.mode&fs.ModeSymlink == 0 {
		e.content = content
		return z.u.add(e)
	}
	if f.raw > v1.MaxPath {
		return v1.ErrInvalidPath
	}
	target, err := io.ReadAll(content)
	if err != nil {
		return z.u.src.readError(err)
	}
	e.target = string(target)
	return z.u.add(e)
}

func (z *zipReader) content(f zipFile) (io.Reader, error) {
	if f.flags&1 != 0 {
		return nil, invalidArchive("Archive is encrypted: %q", f.name)
	}
	var h [zipFileSize]byte
	at := z.dir.base + f.offset
	if at < 0 || at > z.dir.end-zipFileSize {
		return nil, errNotZip
	}
	if _, err := z.u.src.ReadAt(h[:], at); err != nil {
		return nil, err
	}
	at += zipFileSize + int64(binary.LittleEndian.Uint16(h[26:])) + int64(binary.LittleEndian.Uint16(h[28:]))
	if string(h[:4]) != zipFileMark || f.packed > z.dir.end-at {
		return nil, errNotZip
	}
	var r io.Reader = io.NewSectionReader(z.u.src, at, f.packed)
	switch f.method {
	case 0:
	case 8:
		if err := z.inflate.(flate.Resetter).Reset(r, nil); err != nil {
			return nil, err
		}
		r = z.inflate
	default:
		return nil, invalidArchive("Archive is compressed in a way that is not known: method %d", f.method)
	}
	return &checked{r: r, left: f.raw, crc: f.crc, sum: crc32.NewIEEE()}, nil
}

// checked reads the content of an entry and refuses it at its end if it is not
// what the directory promised.
type checked struct {
	r    io.Reader
	left int64
	crc  uint32
	sum  hash.Hash32
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	c.left -= int64(n)
	switch {
	case c.left < 0:
		return n, fmt.Errorf("zip: an entry is longer than it says")
	case !errors.Is(err, io.EOF):
		return n, err
	case c.left > 0:
		return n, io.ErrUnexpectedEOF
	case c.sum.Sum32() != c.crc:
		return n, fmt.Errorf("zip: checksum is wrong")
	}
	return n, err
}
