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

// The records at the end of a zip: their signatures, and their sizes in bytes.
const (
	endSignature       = "PK\x05\x06"
	locator64Signature = "PK\x06\x07"
	end64Signature     = "PK\x06\x06"

	endBytes       = 22
	locator64Bytes = 20
	end64Bytes     = 56
	recordBytes    = 46 // of one entry of the directory, besides its name and extra fields
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
	const timeBytes, largeBytes, large = 9, 28, 1 << 31
	n := recordBytes + timeBytes + int64(len(name))
	if end >= large {
		n += largeBytes
	}
	return n
}

// openZip reads the directory of the zip. Package zip keeps all of it in memory, and
// trusts neither the number of entries nor the size that the zip states. So openZip
// checks both before, and limits the bytes that package zip may read.
func (x *extraction) openZip() (*zip.Reader, error) {
	entries, size, err := zipDirectory(x.src)
	limit := x.limits.ZipDirectoryBytes
	switch {
	case err != nil:
		return nil, err
	case entries > uint64(x.limits.Entries):
		return nil, x.tooManyEntries()
	case size > uint64(limit):
		return nil, zipTooLarge()
	}
	r := &limitedReaderAt{r: x.src, left: limit + zipReadSlack, err: zipTooLarge()}
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

// zipDirectory returns how many entries and bytes the directory of a zip has, as
// the records at the end of the zip state.
func zipDirectory(s *source) (entries, size uint64, err error) {
	tail := make([]byte, min(s.size, zipEndBytes))
	at := s.size - int64(len(tail))
	if _, err := s.ReadAt(tail, at); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	if len(tail) < endBytes {
		return 0, 0, zip.ErrFormat
	}
	i := bytes.LastIndex(tail[:len(tail)-endBytes+len(endSignature)], []byte(endSignature))
	if i < 0 {
		return 0, 0, zip.ErrFormat
	}
	end := tail[i:]
	entries = uint64(binary.LittleEndian.Uint16(end[10:]))
	size = uint64(binary.LittleEndian.Uint32(end[12:]))
	entries64, size64, found, err := zipDirectory64(s, at+int64(i))
	if err != nil {
		return 0, 0, err
	}
	if found && entries == math.MaxUint16 {
		entries = 0
	}
	if found && size == math.MaxUint32 {
		size = 0
	}
	entries, size = max(entries, entries64), max(size, size64)
	if size > uint64(s.size) {
		return 0, 0, zip.ErrFormat
	}
	return entries, size, nil
}

// zipDirectory64 is zipDirectory for the record of a large zip. Its locator lies
// before the record at the offset end.
func zipDirectory64(s *source, end int64) (entries, size uint64, found bool, err error) {
	var locator [locator64Bytes]byte
	if _, err := s.ReadAt(locator[:], end-locator64Bytes); err != nil {
		return 0, 0, false, ignoreEOF(err)
	}
	if string(locator[:4]) != locator64Signature {
		return 0, 0, false, nil
	}
	var record [end64Bytes]byte
	if _, err := s.ReadAt(record[:], int64(binary.LittleEndian.Uint64(locator[8:]))); err != nil {
		return 0, 0, false, ignoreEOF(err)
	}
	if string(record[:4]) != end64Signature {
		return 0, 0, false, nil
	}
	return binary.LittleEndian.Uint64(record[32:]), binary.LittleEndian.Uint64(record[40:]), true, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func zipTooLarge() error {
	return v1.Errorf(v1.SizeLimit, "Too many files for a zip, whose directory is kept in memory: choose another format")
}
