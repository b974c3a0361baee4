package volume

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"
)

// The marks and sizes of a zip's records.
const (
	zipEndMark     = "PK\x05\x06"
	zipEnd64Locate = "PK\x06\x07"
	zipEnd64Mark   = "PK\x06\x06"
	zipEntryMark   = "PK\x01\x02"
	zipFileMark    = "PK\x03\x04"
	zipEndSize     = 22
	zipLocateSize  = 20
	zipEnd64Size   = 56
	zipEntrySize   = 46
	zipFileSize    = 30
)

var errNotZip = errors.New("zip: no valid directory")

// zipFile is one entry of a zip's directory.
type zipFile struct {
	name        string
	mode        fs.FileMode
	time        time.Time
	method      uint16
	flags       uint16
	crc         uint32
	packed, raw int64 // bytes
	offset      int64 // of its header in the archive
}

// zipDir reads the directory of a zip as a stream, so that a million entries
// need no more memory than one. The standard library holds all of them.
type zipDir struct {
	r    *bufio.Reader
	base int64 // what stands before the zip
	end  int64 // where the directory begins: files end before it
}

func openZip(r io.ReaderAt, size int64) (*zipDir, error) {
	tail := make([]byte, min(size, 65535+zipEndSize))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	at := bytes.LastIndex(tail, []byte(zipEndMark))
	if at < 0 || len(tail)-at < zipEndSize {
		return nil, errNotZip
	}
	le, end := binary.LittleEndian, tail[at:]
	endAt := size - int64(len(tail)) + int64(at)
	length, offset := int64(le.Uint32(end[12:])), int64(le.Uint32(end[16:]))
	if length == 0xffffffff || offset == 0xffffffff || le.Uint16(end[10:]) == 0xffff {
		if at64, l, o, ok := end64(r, endAt); ok {
			endAt, length, offset = at64, l, o
		}
	}
	begin := endAt - length
	if length < 0 || offset < 0 || begin < offset {
		return nil, errNotZip
	}
	section := io.NewSectionReader(r, begin, length)
	return &zipDir{r: bufio.NewReaderSize(section, 64<<10), base: begin - offset, end: begin}, nil
}

// end64 finds the end record of a large zip, before the plain one at endAt.
func end64(r io.ReaderAt, endAt int64) (at, length, offset int64, ok bool) {
	le := binary.LittleEndian
	var loc [zipLocateSize]byte
	if endAt < zipLocateSize {
		return 0, 0, 0, false
	}
	if _, err := r.ReadAt(loc[:], endAt-zipLocateSize); err != nil || string(loc[:4]) != zipEnd64Locate {
		return 0, 0, 0, false
	}
	at = int64(le.Uint64(loc[8:]))
	var end [zipEnd64Size]byte
	if at < 0 || at > endAt-zipEnd64Size-zipLocateSize {
		return 0, 0, 0, false
	}
	if _, err := r.ReadAt(end[:], at); err != nil || string(end[:4]) != zipEnd64Mark {
		return 0, 0, 0, false
	}
	return at, int64(le.Uint64(end[40:])), int64(le.Uint64(end[48:])), true
}

// next reads one entry; io.EOF follows the last.
func (d *zipDir) next() (zipFile, error) {
	var h [zipEntrySize]byte
	if _, err := io.ReadFull(d.r, h[:]); err != nil {
		return zipFile{}, err
	}
	if string(h[:4]) != zipEntryMark {
		return zipFile{}, errNotZip
	}
	le := binary.LittleEndian
	f := zipFile{
		flags: le.Uint16(h[8:]), method: le.Uint16(h[10:]), crc: le.Uint32(h[16:]),
		packed: int64(le.Uint32(h[20:])), raw: int64(le.Uint32(h[24:])), offset: int64(le.Uint32(h[42:])),
		time: dosTime(le.Uint16(h[14:]), le.Uint16(h[12:])),
	}
	rest := make([]byte, int(le.Uint16(h[28:]))+int(le.Uint16(h[30:])))
	if _, err := io.ReadFull(d.r, rest); err != nil {
		return f, errNotZip
	}
	if _, err := d.r.Discard(int(le.Uint16(h[32:]))); err != nil {
		return f, errNotZip
	}
	n := le.Uint16(h[28:])
	f.name = string(rest[:n])
	f.mode = zipMode(h[5], le.Uint32(h[38:]), strings.HasSuffix(f.name, "/"))
	return f, f.extra(rest[n:])
}

// extra reads the fields that did not fit, and a time that knows its zone.
func (f *zipFile) extra(b []byte) error {
	le := binary.LittleEndian
	for len(b) >= 4 {
		id, n := le.Uint16(b), int(le.Uint16(b[2:]))
		if b = b[4:]; n > len(b) {
			break // some writers are careless here
		}
		switch field := b[:n]; {
		case id == 1:
			if !f.large(field) {
				return errNotZip
			}
		case id == 0x5455 && n >= 5 && field[0]&1 != 0:
			f.time = time.Unix(int64(int32(le.Uint32(field[1:]))), 0)
		}
		b = b[n:]
	}
	return nil
}

// large reads the sizes and the offset of a large entry.
func (f *zipFile) large(b []byte) bool {
	for _, v := range []*int64{&f.raw, &f.packed, &f.offset} {
		if *v != 0xffffffff {
			continue
		}
		if len(b) < 8 {
			return false
		}
		if *v = int64(binary.LittleEndian.Uint64(b)); *v < 0 {
			return false
		}
		b = b[8:]
	}
	return true
}

// zipMode reads the mode that a unix wrote, or makes one from what DOS knows.
func zipMode(system byte, attributes uint32, folder bool) fs.FileMode {
	unix := attributes >> 16
	if (system == 3 || system == 19) && unix != 0 {
		m := fs.FileMode(unix).Perm()
		switch unix & 0o170000 {
		case 0, 0o100000:
		case 0o040000:
			return m | fs.ModeDir
		case 0o120000:
			return m | fs.ModeSymlink
		default:
			return m | fs.ModeIrregular
		}
		if folder {
			m |= fs.ModeDir
		}
		return m
	}
	if folder || attributes&0x10 != 0 {
		return fs.ModeDir | 0o755
	}
	if attributes&1 != 0 {
		return 0o444
	}
	return 0o644
}

// dosTime is a time without a zone, taken as UTC.
func dosTime(date, clock uint16) time.Time {
	if date == 0 {
		return time.Time{}
	}
	return time.Date(int(date>>9)+1980, time.Month(date>>5&15), int(date&31),
		int(clock>>11), int(clock>>5&63), int(clock&31)*2, 0, time.UTC)
}
