package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	v1 "berth/api/v1"
)

// BlockSize is the size in bytes of a buffer that any record fits into.
const BlockSize = 128 << 10

// ReadAt reads records between two offsets into buf, as far as they fit and are in one
// file. If the first ones were rotated away, it reads from the oldest that is kept. At
// is the offset of the block.
func (j *Journal) ReadAt(buf []byte, off, end int64) (block []byte, at int64, err error) {
	for _, s := range j.segments() {
		off = max(off, s.start)
		if off >= min(s.end, end) {
			continue
		}
		file, err := j.files.open(s)
		if errors.Is(err, fs.ErrNotExist) {
			off = s.end
			continue
		}
		if err != nil {
			return nil, off, err
		}
		n, err := file.ReadAt(buf[:min(int64(len(buf)), min(s.end, end)-off)], off-s.start)
		_ = file.Close() // it was read only
		return buf[:n], off, err
	}
	return nil, end, nil
}

// Since calls each with the first record that is not older than since and with all
// behind it, until each returns false. The records are in their order; a few may be
// older than since, as Docker's are. Data is valid during the call only.
func (j *Journal) Since(ctx context.Context, since time.Time, each func(v1.Line) bool) error {
	segs := j.segments()
	first, off := 0, int64(0)
	for i, s := range slices.Backward(segs) {
		at, older, err := seek(j.files, s, since)
		if err != nil {
			return err
		}
		first, off = i, at
		if older {
			break
		}
	}
	begun := false
	for i := first; i < len(segs); i++ {
		more, err := forward(ctx, j, segs[i], off, func(l v1.Line) bool {
			begun = begun || !l.Time.Before(since)
			return !begun || each(l)
		})
		if err != nil || !more {
			return err
		}
		off = 0
	}
	return nil
}

// seek returns an offset in a segment's file before which every record is older
// than since. Older reports that the first record is, so earlier files have none.
func seek(f files, s segment, since time.Time) (off int64, older bool, err error) {
	file, err := f.open(s)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer file.Close()
	size := s.end - s.start
	for off = max(0, size-seekStep); ; off = max(0, off-seekStep) {
		at, ok, err := firstTime(file, off, size)
		if err != nil {
			return 0, false, err
		}
		if older = ok && at.Before(since); older || off == 0 {
			return off, older, nil
		}
	}
}

const seekStep = 256 << 10

// firstTime returns the time of the first good record that begins behind an offset, or at 0.
func firstTime(r io.ReaderAt, off, size int64) (time.Time, bool, error) {
	buf := make([]byte, min(BlockSize, size-off))
	if _, err := r.ReadAt(buf, off); err != nil {
		return time.Time{}, false, err
	}
	if off > 0 {
		buf = buf[bytes.IndexByte(buf, '\n')+1:]
	}
	for len(buf) > 0 {
		if at, _, ok := parseHeader(buf); ok {
			return at, true, nil
		}
		_, buf, _ = bytes.Cut(buf, []byte{'\n'})
	}
	return time.Time{}, false, nil
}

// forward calls each with a segment's records from an offset of its file on. It
// returns false when each did. The first record may be cut, and is then left out.
func forward(ctx context.Context, j *Journal, s segment, off int64, each func(v1.Line) bool) (bool, error) {
	file, err := j.files.open(s)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	size := s.end - s.start
	buf := make([]byte, BlockSize)
	for off < size {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		block := buf[:min(int64(len(buf)), size-off)]
		if _, err := file.ReadAt(block, off); err != nil {
			return false, err
		}
		used, more := records(block, each)
		if !more {
			return false, nil
		}
		if used == 0 { // no record is that long
			used = len(block)
		}
		off += int64(used)
	}
	return true, nil
}

// records calls each with the complete records of a block and returns their size.
func records(block []byte, each func(v1.Line) bool) (used int, more bool) {
	for {
		l, size, ok := Next(block[used:])
		if size == 0 {
			return used, true
		}
		used += size
		if ok && !each(l) {
			return used, false
		}
	}
}

// Next decodes the first record of a block and returns its size with the line
// feed; 0: the block has no complete one. Ok is false if it is damaged. The line's data
// is a part of block, which is changed.
func Next(block []byte) (l v1.Line, size int, ok bool) {
	n := bytes.IndexByte(block, '\n')
	if n < 0 {
		return v1.Line{}, 0, false
	}
	l, ok = parse(block[:n])
	return l, n + 1, ok
}
