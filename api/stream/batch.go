package stream

import (
	"fmt"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/store/journal"
)

// batch is the messages of one call of Next. The next call uses its memory again.
type batch struct {
	nodeWide bool
	lost     func(lines int64)
	now      func() time.Time
	blocks   *sync.Pool // of *[]byte, journal.BlockSize each

	buf       []byte
	start     int // in buf, of the message being made
	out       []Message
	first     time.Time // of its first line
	fragments []*fragment
	disk      *[]byte // of blocks
}

// keepBuffer is the memory that a listener keeps when little is printed, in bytes.
const keepBuffer = 16 << 10

func (b *batch) reset() {
	if cap(b.buf) > keepBuffer && len(b.buf) < keepBuffer/4 {
		b.buf = nil // memory for a flood is not kept
	}
	b.buf, b.out, b.first = b.buf[:0], b.out[:0], time.Time{}
}

// release releases what is needed only while a batch is made.
func (b *batch) release() {
	clear(b.fragments)
	if b.disk != nil {
		b.blocks.Put(b.disk)
		b.disk = nil
	}
}

// size returns the size of the message being made, in bytes.
func (b *batch) size() int { return len(b.buf) - b.start }

func (b *batch) begin(container string, message bool) {
	b.start = len(b.buf)
	event := EventConsole
	if message {
		event = v1.EventMessage
	}
	if !b.nodeWide {
		container = ""
	}
	b.buf = appendHead(b.buf, event, container)
	b.buf = append(b.buf, `,"data":"`...)
	b.out = append(b.out, Message{Event: event})
}

// end completes the message being made: its receiver has read up to line.
func (b *batch) end(first, last time.Time, line LineCursor) {
	if b.first.IsZero() {
		b.first = first
	}
	b.complete(AddLine(appendFoot(append(b.buf, '"'), last, 0, ""), line))
}

func (b *batch) complete(buf []byte) {
	b.buf = buf
	b.out[len(b.out)-1].JSON = b.buf[b.start:len(b.buf):len(b.buf)]
	b.start = len(b.buf)
}

// dropped adds a message with the number of lines that the client missed: those
// between two cursors.
func (b *batch) dropped(container string, lines int64, from, to LineCursor) {
	b.lost(lines)
	now := b.now()
	b.begin(container, true)
	b.buf = fmt.Appendf(b.buf, "%d console lines were dropped: this client reads too slowly", lines)
	foot := addCursor(appendFoot(append(b.buf, '"'), now, 0, ""), "since_line", from)
	b.complete(AddLine(foot, to))
}

// read returns a block of a journal between two offsets, or nil if the journal has
// not kept it or cannot be read.
func (b *batch) read(j *journal.Journal, from, to int64) []byte {
	if b.disk == nil {
		b.disk = b.blocks.Get().(*[]byte)
	}
	block, at, err := j.ReadAt(*b.disk, from, to)
	if err != nil || at != from {
		return nil
	}
	return block
}
