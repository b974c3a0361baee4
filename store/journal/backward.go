package journal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"iter"
	"slices"

	v1 "berth/api/v1"
)

// Record is a line, or a part of one, and the offset of its first byte.
type Record struct {
	Line   v1.Line // its data is valid until the next record
	Offset int64
}

// Backward yields the records before an offset, the newest first. It reads block
// by block, so its cost is that of the records that are taken. It ends where a
// file was rotated away meanwhile. An error comes alone and last.
func (j *Journal) Backward(end int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, s := range slices.Backward(j.segments()) {
			if s.start >= end {
				continue
			}
			more, err := j.backwardIn(s, end, yield)
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// backwardIn yields the records of one segment. It returns false if no older ones
// are to follow.
func (j *Journal) backwardIn(s segment, end int64, yield func(Record, error) bool) (bool, error) {
	file, err := j.files.open(s)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	for b := (backwardReader{r: file, to: min(s.end, end) - s.start}); ; {
		raw, more, err := b.next()
		if err != nil || !more {
			return true, err
		}
		l, ok := parse(raw.data)
		if ok && !yield(Record{l, s.start + raw.off}, nil) {
			return false, nil
		}
	}
}

// rawRecord is a record as stored and the offset of its first byte. A part
// without a line feed is not complete.
type rawRecord struct {
	data     []byte // without the line feed; valid until the next one
	off      int64
	complete bool
}

// backwardReader reads the records between two offsets of a file block by block,
// the last record first.
type backwardReader struct {
	r        io.ReaderAt
	from, to int64  // not read yet
	rest     []byte // read and not returned; it begins at to
	ended    bool   // a line feed follows rest
}

const backwardBlock = 64 << 10

// next returns the record before the last one, or false at the beginning.
func (b *backwardReader) next() (rawRecord, bool, error) {
	for {
		i := bytes.LastIndexByte(b.rest, '\n')
		switch {
		case i >= 0:
			f := rawRecord{data: b.rest[i+1:], off: b.to + int64(i) + 1, complete: b.ended}
			b.rest, b.ended = b.rest[:i], true
			if f.complete || len(f.data) > 0 {
				return f, true, nil
			}
		case b.to > b.from:
			if err := b.fill(); err != nil {
				return rawRecord{}, false, err
			}
		default:
			f := rawRecord{data: b.rest, off: b.from, complete: b.ended}
			b.rest, b.ended = nil, false
			return f, f.complete || len(f.data) > 0, nil
		}
	}
}

func (b *backwardReader) fill() error {
	n := min(backwardBlock, b.to-b.from)
	block := make([]byte, n, n+int64(len(b.rest)))
	if _, err := b.r.ReadAt(block, b.to-n); err != nil {
		return err
	}
	b.to -= n
	b.rest = append(block, b.rest...)
	return nil
}
