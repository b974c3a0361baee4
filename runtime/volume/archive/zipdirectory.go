package archive

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"

	v1 "berth/api/v1"
)

// zipEndBytes is where package zip searches for the record at the end, in bytes
// from the end of the file.
const zipEndBytes = 65 << 10

// zipReadSlack is how many bytes package zip may read besides the directory, to find
// it.
const zipReadSlack = 1 << 20

// zipRecordBytes returns the most bytes that package zip writes to the directory for
// an entry that ends before the offset end: a time, and the sizes of a large file.
func zipRecordBytes(name string, end int64) int64 {
	const recordBytes, timeBytes, largeBytes, large = 46, 9, 28, 1 << 31
	n := recordBytes + timeBytes + int64(len(name))
	if end >= large {
		n += largeBytes
	}
	return n
}

// openZip reads the directory of the zip. Package zip keeps all of it in memory, and makes room for
// as many entries as the zip states. So openZip checks that number and the directory's size before,
// and limits the bytes that package zip may read.
func (x *extraction) openZip(memory *zipMemory) (*zip.Reader, error) {
	entries, size, err := zipDirectory(x.src)
	switch {
	case err != nil:
		return nil, err
	case size > uint64(x.src.size):
		return nil, zip.ErrFormat
	case entries > uint64(x.limits.Entries):
		return nil, x.tooManyEntries()
	case size > uint64(x.limits.ZipDirectoryBytes):
		return nil, zipTooLarge()
	}
	if err := memory.grow(int64(size)); err != nil {
		return nil, err
	}
	most := x.limits.ZipDirectoryBytes
	if memory.of != nil {
		most = memory.held // it may state less than it has
	}
	r := &limitedReaderAt{r: x.src, left: most + zipReadSlack, err: zipTooLarge()}
	zr, err := zip.NewReader(r, x.src.size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	if len(zr.File) > x.limits.Entries {
		return nil, x.tooManyEntries()
	}
	r.left = math.MaxInt64 // contents have limits of their own
	return zr, nil
}

// limitedReaderAt returns err once more than left bytes are read.
type limitedReaderAt struct {
	r    io.ReaderAt
	left int64
	err  error
}

func (l *limitedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, l.err
	}
	return l.r.ReadAt(p, off)
}

// zipDirectory returns how many entries and bytes the directory of a zip has, as the records at its
// end state. That of a large zip has another record, whose locator lies before the first.
func zipDirectory(s *source) (entries, size uint64, err error) {
	const endBytes, locatorBytes = 22, 20
	tail := make([]byte, min(s.size, zipEndBytes))
	at := s.size - int64(len(tail))
	if _, err := s.ReadAt(tail, at); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	i := bytes.LastIndex(tail[:max(0, len(tail)-endBytes+4)], []byte("PK\x05\x06"))
	if i < 0 {
		return 0, 0, zip.ErrFormat
	}
	entries, size = uint64(binary.LittleEndian.Uint16(tail[i+10:])), uint64(binary.LittleEndian.Uint32(tail[i+12:]))
	var locator [locatorBytes]byte
	var record [56]byte
	_, err = s.ReadAt(locator[:], at+int64(i)-locatorBytes)
	if err == nil && string(locator[:4]) == "PK\x06\x07" {
		_, err = s.ReadAt(record[:], int64(binary.LittleEndian.Uint64(locator[8:])))
	}
	if err == nil && string(record[:4]) == "PK\x06\x06" {
		entries = max(entries%math.MaxUint16, binary.LittleEndian.Uint64(record[32:]))
		return entries, max(size%math.MaxUint32, binary.LittleEndian.Uint64(record[40:])), nil
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, size, err
}

func zipTooLarge() error {
	return v1.Errorf(v1.SizeLimit, "Too many files for a zip, whose directory is kept in memory: choose another format")
}
