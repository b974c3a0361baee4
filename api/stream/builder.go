package stream

import (
	"time"

	v1 "berth/api/v1"
	"berth/store/journal"
)

// fragment is some lines of a console that were written together. It does not
// change once it is in a ring: listeners share it.
type fragment struct {
	from, to position
	first    time.Time // of its first line
	last     time.Time // of its last line
	text     []byte    // the lines as the inside of a JSON string
	message  bool      // a message of berth
}

// cost returns the memory of a fragment, in bytes, approximately.
func (f *fragment) cost() int { return cap(f.text) + 160 }

// builder makes the records of some lines, and their fragments if there are listeners.
type builder struct {
	text    bool // make fragments
	records []byte
	lines   int64
	last    time.Time // see v1.Line.At
	held    []byte    // see log.held
	open    *fragment
	done    []*fragment
}

// end returns the position behind the lines. Off is from's if they were not written.
func (b *builder) end(from position, off int64) position {
	if off == from.off {
		return position{from.line + b.lines, off, from.at}
	}
	return position{from.line + b.lines, off, b.last.UnixNano()}
}

func (b *builder) add(l v1.Line) {
	if !l.Time.After(b.last) {
		l.Shown = b.last.Add(1)
	}
	b.last = l.At()
	b.records = journal.AppendRecord(b.records, l)
	b.lines++
	if b.text {
		b.addText(l)
	}
	b.held = heldBack(l, b.held)
	if b.open != nil {
		b.open.to = position{b.lines, int64(len(b.records)), b.last.UnixNano()}
		b.open.last = b.last
	}
}

func (b *builder) addText(l v1.Line) {
	if b.open != nil && (b.open.message != l.Message || len(b.open.text) >= maxPiece || l.Message) {
		b.close()
	}
	if b.open == nil {
		b.open = &fragment{first: l.Time, message: l.Message}
		if n := len(b.done); n > 0 {
			b.open.from = b.done[n-1].to
		}
	}
	b.open.text = appendLine(b.open.text, l, b.held)
}

func (b *builder) close() {
	if b.open != nil {
		b.done = append(b.done, b.open)
		b.open = nil
	}
}

// appendLine appends a line as the inside of a JSON string. Held is the beginning of
// a rune at the end of the partial line before.
func appendLine(b []byte, l v1.Line, held []byte) []byte {
	data := l.Data
	if len(held) > 0 && !l.Message {
		data = append(held[:len(held):len(held)], data...)
	}
	switch {
	case l.Message:
		return appendText(b, data)
	case l.Partial:
		return appendText(b, data[:len(data)-runeTail(data)])
	}
	return append(appendText(b, data), '\\', 'n')
}

// heldBack returns the bytes that appendLine leaves for the next line: the beginning
// of a rune at the end of a partial line.
func heldBack(l v1.Line, held []byte) []byte {
	if l.Message {
		return held
	}
	if !l.Partial {
		return nil
	}
	if len(l.Data) < 4 {
		l.Data = append(held[:len(held):len(held)], l.Data...)
	}
	return append([]byte(nil), l.Data[len(l.Data)-runeTail(l.Data):]...)
}
