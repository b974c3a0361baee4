package stream

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// part is the records of one console that a History has still to send.
type part struct {
	log      *log
	off, end int64  // in the journal
	goesOn   bool   // the last record was a part of a line
	held     []byte // the beginning of a rune that it has left

	// The record at off, while a block is there.
	disk  *[]byte // of the hub's blocks
	block []byte  // what is read of the journal from off on
	size  int     // of the record; 0: it is not parsed
	line  v1.Line
	text  []byte // its data after held, without the beginning of a rune at its end
	rest  []byte // that beginning

	used int // bytes of text that are sent; kept when the block is not
}

// find finds the first of the last n records' lines that are not older than since
// and no more than historyBytes as encoded, and returns how many lines they are.
func (p *part) find(n int, since time.Time) (lines int, err error) {
	p.off = p.end
	t := finder{left: max(min(n, maxTail), 0), room: historyBytes, since: since}
	for _, s := range slices.Backward(p.log.segments()) {
		if t.done || s.start >= p.end {
			continue
		}
		if err := t.segment(p.log.files, s, p.end); err != nil {
			return 0, err
		}
		if t.found {
			p.off = t.first
		}
	}
	return t.lines, nil
}

// finder counts lines from the newest to the oldest.
type finder struct {
	left, room int
	since      time.Time
	lines      int
	first      int64 // offset of the oldest record that belongs to them
	found      bool
	done       bool
}

func (t *finder) segment(f files, s segment, upto int64) error {
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
		t.add(rec.data, s.start+rec.off)
	}
	return nil
}

// add counts a record, or is done. A line is whole when the record before it is
// no part of it.
func (t *finder) add(rec []byte, off int64) {
	l, ok := parseRecord(rec)
	if !ok {
		return
	}
	size := encodedSize(l.Data)
	begins := !l.Partial || !t.found
	if begins && t.left == 0 || l.Time.Before(t.since) || t.room < size {
		t.done = true
		return
	}
	if begins {
		t.left--
		t.lines++
	}
	t.room -= size
	t.first, t.found = off, true
}

// lineCost is what a line costs beside its data in the encoded history, in bytes.
const lineCost = 64

// encodedSize is how long data is at most as the inside of a JSON string.
func encodedSize(data []byte) int {
	size := lineCost + len(data)
	for _, c := range data {
		if c < ' ' || c >= 0x80 {
			size += 5
		} else if c == '"' || c == '\\' {
			size++
		}
	}
	return size
}

// peek parses the record at off; it is false at the end.
func (p *part) peek(blocks *sync.Pool) (bool, error) {
	for p.size == 0 && p.off < p.end {
		l, size, ok := nextRecord(p.block)
		switch {
		case size == 0 && p.fresh():
			p.off += int64(len(p.block)) // no record is that long
			p.block = nil
		case size == 0:
			if err := p.load(blocks); err != nil {
				return false, err
			}
		case !ok:
			p.skip(size)
		default:
			p.parsed(l, size)
		}
	}
	return p.size > 0, nil
}

// fresh reports whether the block is as long as one can be.
func (p *part) fresh() bool {
	return len(p.block) == int(min(blockSize, p.limit()-p.off)) && len(p.block) > 0
}

// limit is the end of the file that holds off, or of the part.
func (p *part) limit() int64 {
	for _, s := range p.log.segments() {
		if p.off >= s.start && p.off < s.end {
			return min(s.end, p.end)
		}
	}
	return p.end
}

// load reads the block at off. What is rotated away by now is left out.
func (p *part) load(blocks *sync.Pool) error {
	if p.disk == nil {
		p.disk = blocks.Get().(*[]byte)
	}
	for _, s := range p.log.segments() {
		if p.off < s.start {
			p.off, p.used = s.start, 0
		}
		if p.off >= min(s.end, p.end) {
			continue
		}
		file, err := p.log.files.open(s)
		if errors.Is(err, fs.ErrNotExist) {
			p.off, p.used = s.end, 0
			continue
		}
		if err != nil {
			return err
		}
		n, err := file.ReadAt((*p.disk)[:min(blockSize, min(s.end, p.end)-p.off)], p.off-s.start)
		_ = file.Close() // it was read only
		p.block = (*p.disk)[:n]
		return err
	}
	p.off = p.end
	return nil
}

// parsed takes over the record at off.
func (p *part) parsed(l v1.Line, size int) {
	p.line, p.size, p.text, p.rest = l, size, l.Data, nil
	if l.Message {
		return
	}
	if len(p.held) > 0 {
		p.text = append(p.held[:len(p.held):len(p.held)], l.Data...)
	}
	if l.Partial {
		whole := len(p.text) - runeTail(p.text)
		p.text, p.rest = p.text[:whole], p.text[whole:]
	}
}

// appendSome appends the record's text up to a length of b, and a few bytes at least.
func (p *part) appendSome(b []byte, limit int) []byte {
	const most, least = 6, 64 // bytes that a byte becomes; bytes
	some := p.text[p.used:]
	if room := max((limit-len(b))/most, least); len(some) > room {
		some = some[:room]
		some = some[:room-runeTail(some)]
	}
	p.used += len(some)
	return appendText(b, some)
}

// consume goes on to the next record.
func (p *part) consume() {
	if !p.line.Message {
		p.held = bytes.Clone(p.rest)
	}
	p.goesOn = p.line.Partial && !p.line.Message
	p.used = 0
	p.skip(p.size)
}

func (p *part) skip(size int) {
	p.block, p.off, p.size = p.block[size:], p.off+int64(size), 0
}

// release gives the block back. The record is parsed again when it goes on.
func (p *part) release(blocks *sync.Pool) {
	if p.disk != nil {
		blocks.Put(p.disk)
	}
	p.disk, p.block, p.size, p.text, p.rest, p.line = nil, nil, 0, nil, nil, v1.Line{}
}
