package journal

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"sort"
	"time"

	v1 "berth/api/v1"
)

// blockSize is the number of bytes that are read at once. Any record fits: escapes at most double
// the v1.MaxLine bytes of a line.
const blockSize = 4 * v1.MaxLine

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
// its blocks, of at most blockSize. In a block without a record From is To.
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
	file, err := os.Open(j.path(s))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.ReadAt(data, off-s.start)
	return err
}

// Read returns the first block of records of a role from an offset on, and before end; an empty role
// is both. From of the block is greater than the offset if lines in between are no longer kept, or
// are of the other role. There are no more records if it is end.
func (j *Journal) Read(role string, off, end int64) (Block, error) {
	for _, s := range j.segments(role) {
		to := min(s.end, end)
		for from := max(off, s.start); from < to; from += blockSize { // damage: no record is that long
			b, err := j.block(s, from, min(to, from+blockSize))
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
			b, err := j.Read(role, off, end)
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
				from := max(s.start, to-blockSize)
				b, err := j.block(s, from, to)
				if errors.Is(err, fs.ErrNotExist) {
					return
				}
				if err != nil {
					yield(Record{}, err)
					return
				}
				if to = b.From; b.From == b.To { // damage
					to = from
				}
				var list []Record
				for r, ok := b.Next(); ok; r, ok = b.Next() {
					list = append(list, r)
				}
				for _, r := range slices.Backward(list) {
					if !yield(r, nil) {
						return
					}
				}
			}
		}
	}
}

// Seek returns the offset of the first record of a role whose time, as v1.Line.At, is not before at. It
// is that of the end if there is none.
func (j *Journal) Seek(role string, at time.Time) (off int64, err error) {
	type piece struct {
		s        segment
		from, to int64
	}
	var pieces []piece
	for _, s := range j.segments(role) {
		for from := s.start; from < s.end; from += blockSize {
			pieces = append(pieces, piece{s, from, min(s.end, from+blockSize)})
		}
	}
	// A piece that has a record before at proves that the one sought is not before the piece.
	first := sort.Search(len(pieces), func(i int) bool {
		b, failed := j.block(pieces[i].s, pieces[i].from, pieces[i].to)
		if errors.Is(failed, fs.ErrNotExist) { // it was removed meanwhile
			return false
		}
		err = errors.Join(err, failed)
		r, ok := b.Next()
		return !ok || !r.Line.At().Before(at)
	})
	if first > 0 {
		off = pieces[first-1].from
	}
	end := j.End().Offset
	for r, failed := range j.Forward(role, off, end) {
		if err = errors.Join(err, failed); err != nil || !r.Line.At().Before(at) {
			return r.Offset, err
		}
	}
	return end, err
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

// Current calls each with the records of the container that Begin has named last, in their order,
// until each returns false.
func (j *Journal) Current(ctx context.Context, role string, each func(v1.Line) bool) error {
	j.mu.Lock()
	from, end := j.roles[role].checkpoint.From, j.end.Offset
	j.mu.Unlock()
	for r, err := range j.Forward(role, from, end) {
		if err = errors.Join(err, ctx.Err()); err != nil || !each(r.Line) {
			return err
		}
	}
	return nil
}

// Count returns the number of records of both roles that are kept between two offsets.
func (j *Journal) Count(from, to int64) (n int64, err error) {
	for from < to {
		b, err := j.Read("", from, to)
		if err != nil {
			return 0, err
		}
		n += int64(bytes.Count(b.data, []byte{'\n'}))
		from = b.To
	}
	return n, nil
}
