package stream

import (
	"bytes"
	"sync"

	v1 "berth/api/v1"
	"berth/store/journal"
)

// part is the records of one console that a History has yet to send.
type part struct {
	log      *log
	off, end int64  // in the journal
	at       int64  // time, as v1.Line.At, of the last line before off that was consumed or left out; 0: none
	lost     bool   // rotation has removed lines at off
	partial  bool   // the last record was a part of a line
	held     []byte // the beginning of a rune at its end

	// The record at off, while a block is there.
	disk  *[]byte // of the hub's blocks
	block []byte  // of the journal, from off on
	fresh bool    // no record of block is consumed yet
	size  int     // of the record; 0: it is not decoded
	line  v1.Line
	text  []byte // its data after held, without the beginning of a rune at its end
	rest  []byte // that beginning

	used int // bytes of text that are sent; kept when the block is released
}

func newPart(g *log, end position) *part {
	return &part{log: g, off: end.off, end: end.off, at: end.at}
}

// lineCost is the size of a line in the encoded history besides its data, in bytes.
const lineCost = 64

// encodedSize returns an upper bound of the size of a line in the encoded history.
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

// peek decodes the record at off; it returns false at the end.
func (p *part) peek(blocks *sync.Pool) (bool, error) {
	for p.size == 0 && p.off < p.end {
		l, size, ok := journal.Next(p.block)
		switch {
		case size == 0 && p.fresh:
			p.skip(len(p.block)) // damage: no record is that long
		case size == 0:
			if err := p.load(blocks); err != nil {
				return false, err
			}
		case !ok:
			p.skip(size)
		default:
			p.setRecord(l, size)
		}
	}
	return p.size > 0, nil
}

// load reads the block at off. It leaves out records that were rotated away.
func (p *part) load(blocks *sync.Pool) error {
	if p.disk == nil {
		p.disk = blocks.Get().(*[]byte)
	}
	block, at, err := p.log.journal.ReadAt(*p.disk, p.off, p.end)
	if at != p.off {
		p.off, p.used, p.lost = at, 0, true
	}
	p.block, p.fresh = block, len(block) > 0
	return err
}

// setRecord sets the record at off.
func (p *part) setRecord(l v1.Line, size int) {
	p.line, p.size, p.text, p.rest = l, size, l.Data, nil
	if l.Message {
		return
	}
	if len(p.held) > 0 {
		p.text = append(p.held[:len(p.held):len(p.held)], l.Data...)
	}
	if l.Partial {
		n := len(p.text) - runeTail(p.text)
		p.text, p.rest = p.text[:n], p.text[n:]
	}
}

// appendSome appends text of the record until b has a length, and a few bytes at least.
func (p *part) appendSome(b []byte, limit int, f format) []byte {
	const expansion, least = 6, 64 // bytes that JSON writes for one byte; bytes
	some := p.text[p.used:]
	if n := max((limit-len(b))/expansion, least); len(some) > n {
		some = some[:n]
		some = some[:n-runeTail(some)]
	}
	p.used += len(some)
	if f == asPlain {
		return append(b, some...)
	}
	return appendText(b, some)
}

// consume continues with the next record.
func (p *part) consume() {
	if !p.line.Message {
		p.held = bytes.Clone(p.rest)
	}
	p.partial = p.line.Partial && !p.line.Message
	p.used, p.at = 0, lineTime(p.line)
	p.skip(p.size)
}

func (p *part) skip(size int) {
	p.block, p.off, p.size, p.fresh = p.block[size:], p.off+int64(size), 0, false
}

// release returns the block to the pool. The record is decoded again later.
func (p *part) release(blocks *sync.Pool) {
	if p.disk != nil {
		blocks.Put(p.disk)
	}
	p.disk, p.block, p.fresh, p.size, p.text, p.rest, p.line = nil, nil, false, 0, nil, nil, v1.Line{}
}
