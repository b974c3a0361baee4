package stream

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

// tail reads the last n lines that end before an offset and are not older than
// since, oldest first; fewer, if they are more than tailBytes. It reads
// backwards, so its cost is that of what it returns.
func (g *log) tail(n int, since time.Time, upto int64) ([]v1.Line, error) {
	t := tailer{left: max(min(n, maxTail), 0), since: since, room: tailBytes}
	for _, s := range slices.Backward(g.segments()) {
		if t.done || s.start >= upto {
			continue
		}
		if err := t.segment(g.files, s, upto); err != nil {
			return nil, err
		}
	}
	slices.Reverse(t.records)
	return join(t.records), nil
}

func (g *log) segments() []segment {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.segs)
}

// tailer gathers records from the newest to the oldest.
type tailer struct {
	left    int // lines
	room    int // bytes
	since   time.Time
	records []v1.Line
	done    bool
}

func (t *tailer) segment(f files, s segment, upto int64) error {
	file, err := f.open(s)
	if errors.Is(err, fs.ErrNotExist) { // rotated away by now
		t.done = true
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for b := (backward{r: file, to: min(s.end, upto) - s.start}); !t.done; {
		rec, more, err := b.next()
		if err != nil || !more {
			return err
		}
		t.add(rec.data)
	}
	return nil
}

// add takes a record. A line is whole when the record before it is no part of it.
func (t *tailer) add(rec []byte) {
	l, ok := parseRecord(rec)
	if !ok {
		return
	}
	begins := !l.Partial || len(t.records) == 0
	if begins && t.left == 0 || l.Time.Before(t.since) || t.room < len(l.Data) {
		t.done = true
		return
	}
	if begins {
		t.left--
	}
	t.room -= len(l.Data)
	t.records = append(t.records, l)
}

// join puts the parts of each line together. A line has the time of its first part.
func join(records []v1.Line) []v1.Line {
	lines := make([]v1.Line, 0, len(records))
	goesOn := false
	for _, r := range records {
		if goesOn && !r.Message {
			last := &lines[len(lines)-1]
			last.Data = append(last.Data[:len(last.Data):len(last.Data)], r.Data...)
			last.Partial = r.Partial
		} else {
			lines = append(lines, r)
		}
		goesOn = lines[len(lines)-1].Partial
	}
	return lines
}

// since hands out the first record that is not older than a time and all behind
// it, until each is false. Data is valid during the call only.
func (g *log) since(ctx context.Context, since time.Time, each func(v1.Line) bool) error {
	segs := g.segments()
	first, off := 0, int64(0)
	for i, s := range slices.Backward(segs) {
		at, older, err := seek(g.files, s, since)
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
		more, err := g.forward(ctx, segs[i], off, func(l v1.Line) bool {
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

// seek finds an offset in a segment's file before which every record is older
// than since. Older says that the first record is, so earlier files need no look.
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

// firstTime is the time of the first record that begins behind an offset, or at 0.
func firstTime(r io.ReaderAt, off, size int64) (time.Time, bool, error) {
	buf := make([]byte, min(blockSize, size-off))
	if _, err := r.ReadAt(buf, off); err != nil {
		return time.Time{}, false, err
	}
	if off > 0 {
		buf = buf[bytes.IndexByte(buf, '\n')+1:]
	}
	at, _, ok := parseHeader(buf)
	return at, ok, nil
}

// forward hands out a segment's records from an offset of its file on. It is
// false when each was. The first record may be cut, and is then left out.
func (g *log) forward(ctx context.Context, s segment, off int64, each func(v1.Line) bool) (bool, error) {
	file, err := g.files.open(s)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	size := s.end - s.start
	buf := make([]byte, blockSize)
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

// records hands out the whole records of a block and returns their size.
func records(block []byte, each func(v1.Line) bool) (used int, more bool) {
	for {
		l, size, ok := nextRecord(block[used:])
		if size == 0 {
			return used, true
		}
		used += size
		if ok && !each(l) {
			return used, false
		}
	}
}

// nextRecord reads the first record of a block. Size 0: there is no whole one.
func nextRecord(block []byte) (l v1.Line, size int, ok bool) {
	n := bytes.IndexByte(block, '\n')
	if n < 0 {
		return v1.Line{}, 0, false
	}
	l, ok = parseRecord(block[:n])
	return l, n + 1, ok
}
