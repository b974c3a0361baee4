package journal

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	v1 "berth/api/v1"
)

// BlockSize is a size in bytes of blocks that any record fits into.
const BlockSize = 128 << 10

// backwardBlock is the size in bytes of what Backward reads at once.
const backwardBlock = 64 << 10

// Record is a line, or a part of one.
type Record struct {
	Line   v1.Line
	Offset int64 // of its first byte
	End    int64 // behind it
}

// Block is records of a segment that follow one another.
type Block struct {
	From, To int64 // offsets of its first record, and behind the last one
	data     []byte
	off      int64 // of data
}

// Next returns the next record. It is false at the end. Damaged records are left out.
func (b *Block) Next() (r Record, ok bool) {
	for !ok {
		n := bytes.IndexByte(b.data, '\n')
		if n < 0 {
			return r, false
		}
		r.Offset, r.End = b.off, b.off+int64(n)+1
		r.Line, ok = parse(b.data[:n])
		b.data, b.off = b.data[n+1:], r.End
	}
	return r, true
}

// block reads the complete records of a segment between two offsets. Every reader of a journal reads
// its blocks. In a block without a record From is To.
func (j *Journal) block(s segment, from, to int64) (Block, error) {
	begin := max(s.start, from-1)
	data := make([]byte, to-begin)
	if err := j.readAt(s, data, begin); err != nil {
		return Block{}, err
	}
	if begin < from { // a record begins behind a line feed
		n := bytes.IndexByte(data, '\n') + 1
		if n == 0 {
			n = len(data)
		}
		data, begin = data[n:], begin+int64(n)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	return Block{From: begin, To: begin + int64(len(data)), data: data, off: begin}, nil
}

func (j *Journal) readAt(s segment, data []byte, off int64) error {
	j.mu.Lock()
	file := j.file
	open := file != nil && len(j.segs) > 0 && j.segs[len(j.segs)-1].start == s.start
	j.mu.Unlock()
	if open {
		if _, err := file.ReadAt(data, off-s.start); !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
	file, err := os.Open(j.path(s))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.ReadAt(data, off-s.start)
	return err
}

// Read returns the records of a role from an offset on, and before end, as far as they fit into a
// size and into one segment; an empty role is both. From of the block is greater than the offset if
// lines in between are no longer kept, or are of the other role. There are no more records if it is end.
func (j *Journal) Read(role string, off, end int64, size int64) (Block, error) {
	for _, s := range j.segments(role) {
		to := min(s.end, end)
		for from := max(off, s.start); from < to; from += BlockSize { // damage: no record is that long
			b, err := j.block(s, from, min(to, from+size))
			if err == nil && b.From == b.To {
				b, err = j.block(s, from, min(to, from+BlockSize))
			}
			if errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
				break
			}
			if err != nil || b.From < b.To {
				return b, err
			}
		}
	}
	return Block{From: end, To: end}, nil
}

// Forward yields the records of a role between two offsets; an empty role is both. Where lines are no
// longer kept or damaged, the offset of a record is greater than the end of the one before. An error
// comes alone and last.
func (j *Journal) Forward(role string, off, end int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for off < end {
			b, err := j.Read(role, off, end, BlockSize)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for r, ok := b.Next(); ok; r, ok = b.Next() {
				if !yield(r, nil) {
					return
				}
			}
			off = b.To
		}
	}
}

// Backward yields the records of a role before an offset, the newest first; an empty role is both. It
// reads block by block, so its cost is that of the records that are taken. It ends where lines were
// removed meanwhile. An error comes alone and last.
func (j *Journal) Backward(role string, end int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, s := range slices.Backward(j.segments(role)) {
			for to := min(end, s.end); to > s.start; {
				list, before, err := j.recordsBefore(s, to)
				if errors.Is(err, fs.ErrNotExist) {
					return
				}
				if err != nil {
					yield(Record{}, err)
					return
				}
				for _, r := range slices.Backward(list) {
					if !yield(r, nil) {
						return
					}
				}
				to = before
			}
		}
	}
}

// recordsBefore returns some records of a segment before an offset, and the offset of the first.
func (j *Journal) recordsBefore(s segment, to int64) (list []Record, before int64, err error) {
	from := max(s.start, to-backwardBlock)
	b, err := j.block(s, from, to)
	if err == nil && b.From == b.To { // a longer record, or damage
		from = max(s.start, to-BlockSize)
		b, err = j.block(s, from, to)
	}
	for r, ok := b.Next(); ok; r, ok = b.Next() {
		list = append(list, r)
	}
	if b.From < to {
		from = b.From
	}
	return list, from, err
}

// Seek returns the offset of the first record of a role whose time, as v1.Line.At, is not before at. It
// is that of the end if there is none.
func (j *Journal) Seek(role string, at time.Time) (int64, error) {
	segs := j.segments(role)
	for _, s := range slices.Backward(segs) {
		first, err := j.block(s, s.start, min(s.end, s.start+BlockSize))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return 0, err
		}
		if r, ok := first.Next(); ok && r.Line.At().Before(at) {
			return j.seekIn(s, at)
		}
	}
	if len(segs) > 0 {
		return segs[0].start, nil
	}
	return j.End().Offset, nil
}

// seekIn halves a segment, whose first record is before a time, until one block is left.
func (j *Journal) seekIn(s segment, at time.Time) (int64, error) {
	low, high := s.start, s.end // the record begins in [low, high]
	for high-low > BlockSize {
		middle := low + (high-low)/2
		b, err := j.block(s, middle, min(s.end, middle+BlockSize))
		if err != nil {
			return 0, err
		}
		if r, ok := b.Next(); ok && r.Line.At().Before(at) {
			low = r.Offset
		} else {
			high = middle
		}
	}
	for r, err := range j.Forward(s.role, low, s.end) {
		if err != nil {
			return 0, err
		}
		if !r.Line.At().Before(at) {
			return r.Offset, nil
		}
	}
	return s.end, nil
}

// Since calls each with the first record of a role whose engine's time is not before since and with
// all behind it, until each returns false. They are in their order; a few may be older than since, as
// Docker's are.
func (j *Journal) Since(ctx context.Context, role string, since time.Time, each func(v1.Line) bool) error {
	off, err := j.Seek(role, since)
	if err != nil {
		return err
	}
	begun := false
	for r, err := range j.Forward(role, off, j.End().Offset) {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		begun = begun || !r.Line.Time.Before(since)
		if begun && !each(r.Line) {
			return nil
		}
	}
	return nil
}

// Count returns the number of records of both roles that are kept between two offsets.
func (j *Journal) Count(from, to int64) (n int64, err error) {
	for from < to {
		b, err := j.Read("", from, to, BlockSize)
		if err != nil {
			return 0, err
		}
		n += int64(bytes.Count(b.data, []byte{'\n'}))
		from = b.To
	}
	return n, nil
}
