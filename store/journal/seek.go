package journal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"

	v1 "berth/api/v1"
)

// Seek returns the offset of the first record whose time, as Line.At, is not before
// at; it is End if there is none.
func (j *Journal) Seek(at time.Time) (int64, error) {
	segs := j.segments()
	for i, s := range segs {
		if s.last.Before(at) && i < len(segs)-1 {
			continue
		}
		off, err := seekIn(j, s, at)
		if err != nil || off < s.end {
			return off, err
		}
	}
	return j.End(), nil
}

func seekIn(j *Journal, s segment, at time.Time) (int64, error) {
	file, err := j.files.open(s)
	if errors.Is(err, fs.ErrNotExist) {
		return s.end, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	off, err := search(file, s.end-s.start, at)
	return s.start + off, err
}

// search returns the offset in a file of the first record that is not before at, or
// size. It halves the file until one block is left.
func search(r io.ReaderAt, size int64, at time.Time) (int64, error) {
	low, high := int64(0), size // the record begins in [low, high]
	for high-low > BlockSize {
		middle := low + (high-low)/2
		first, ok, err := firstTime(r, middle, size)
		if err != nil {
			return 0, err
		}
		if ok && first.Before(at) {
			low = middle
		} else {
			high = middle
		}
	}
	// The record before high may end behind it: read on for as long as a record may be.
	buf := make([]byte, min(3*BlockSize, size-low))
	if _, err := r.ReadAt(buf, low); err != nil {
		return 0, err
	}
	off := int64(0)
	if low > 0 {
		off = int64(bytes.IndexByte(buf, '\n') + 1)
	}
	for off < int64(len(buf)) {
		if time, _, ok := parseHeader(buf[off:]); ok && !time.Before(at) {
			return low + off, nil
		}
		n := bytes.IndexByte(buf[off:], '\n')
		if n < 0 {
			break
		}
		off += int64(n) + 1
	}
	return low + off, nil
}

// At returns the record with a time, as Line.At, and the offset behind it. It returns
// false if there is none. The line is the caller's.
func (j *Journal) At(at time.Time) (l v1.Line, behind int64, ok bool, err error) {
	off, err := j.Seek(at)
	if err != nil {
		return l, 0, false, err
	}
	block, from, err := j.ReadAt(make([]byte, BlockSize), off, j.End())
	if err != nil || from != off {
		return l, 0, false, err
	}
	l, size, ok := Next(block)
	return l, off + int64(size), ok && l.At().Equal(at), nil
}

// Count returns the number of records between two offsets.
func (j *Journal) Count(from, to int64) (n int64, err error) {
	buf := make([]byte, BlockSize)
	for from < to {
		block, at, err := j.ReadAt(buf, from, to)
		if err != nil {
			return 0, err
		}
		n += int64(bytes.Count(block, []byte{'\n'}))
		from = at + int64(len(block))
	}
	return n, nil
}
