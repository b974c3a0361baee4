package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	v1 "berth/api/v1"
	"berth/store/journal"
)

// ErrBusy is the error for lines that could not be read in time.
var ErrBusy = v1.Errorf(v1.Unavailable, "Too many clients read console history: try again")

// The bounds of histories.
const (
	maxTail      = 10_000   // lines
	historyBytes = 4 << 20  // as encoded; only a longer line is cut
	historyPiece = 16 << 10 // bytes at which a piece is complete: it ends with a whole record
	downloads    = 4        // of all lines of one container, open at once
)

// HistoryQuery selects the last lines of a container's console.
type HistoryQuery struct {
	Role          string    // of the lines; empty: those of the installer and of the server
	Tail          int       // lines, 10,000 at most
	Since, Before time.Time // exclusive; zero: no bound
}

// History is lines of a container's console, read from the journal while they are sent: a client that
// does not read costs one piece. It is for one goroutine. The caller closes it.
type History struct {
	console  *console
	role     string
	off, end int64
	held     []byte // the beginning of a rune before off
	missing  string
	most     int    // lines that may begin
	size     int    // as encoded, of what was returned
	hole     bool   // it ends before lines that are no longer kept
	release  func() // a permit

	begun   int
	partial bool    // the last record was a part of a line
	open    bool    // a JSON object has begun
	times   []int64 // of the lines AsText, Unix ns
	some    bool    // NextTimes has returned one
}

// Format is how a History writes its lines.
type Format int

// The formats.
const (
	AsText  Format = iota // the inside of a JSON string; each complete line ends with a line feed
	AsLines               // the inside of a JSON array of {time, data}
	AsPlain               // bytes as they were printed; each complete line ends with a line feed
)

// Missing returns the text of a message about lines that the history lacks, because
// they are no longer kept or its cursor is unknown. It is empty if there are none.
func (x *History) Missing() string { return x.missing }

// Line returns how far a client has read the console with everything that was returned so far.
func (x *History) Line() Cursor {
	if x.console == nil {
		return Cursor{}
	}
	return x.console.journal.Cursor(x.off)
}

// AppendStart appends the JSON of a logs message up to its data, for lines AsText. It leaves out an empty
// container.
func AppendStart(b []byte, container string) []byte {
	b = append(b, `{"event":"logs"`...)
	if container != "" {
		b = append(append(append(b, `,"container":"`...), quoted([]byte(container))...), '"')
	}
	return append(b, `,"data":"`...)
}

// NextTimes appends the next piece of the inside of a JSON array with the times of the lines that Next
// has returned AsText, or nothing at the end.
func (x *History) NextTimes(b []byte) []byte {
	for len(x.times) > 0 && len(b) < historyPiece {
		if x.some {
			b = append(b, ',')
		}
		b = append(time.Unix(0, x.times[0]).UTC().AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
		x.times, x.some = x.times[1:], true
	}
	return b
}

// Close releases the permit of the history. It is called once.
func (x *History) Close() {
	if x.release != nil {
		x.release()
	}
}

// Next appends the next piece of the lines, or nothing at the end. All pieces have one format.
func (x *History) Next(ctx context.Context, b []byte, f Format) ([]byte, error) {
	if x.off >= x.end {
		return x.endLine(b), nil
	}
	release, err := acquire(ctx, x.console.reading)
	if err != nil {
		return b, err
	}
	defer release()
	for from := len(b); x.off < x.end && len(b)-from < historyPiece; {
		block, err := x.console.journal.Read(x.role, x.off, x.end)
		if err != nil {
			return b, err
		}
		if x.role == "" && block.From > x.off && x.begun > 0 { // lines are no longer kept
			if x.hole {
				x.end = x.off
				break
			}
			if f == AsPlain {
				b = append(b, lostText...)
			}
		}
		b = x.append(b, from+historyPiece, block, f)
	}
	if x.off >= x.end && f == AsLines {
		b = x.endLine(b)
	}
	return b, nil
}

// lostText stands in a plain history for lines that were removed before they were sent.
const lostText = "[berth: console lines are missing: they were removed before this client received them]\n"

// append appends the records of a block until b has a length, up to the bounds of the history.
func (x *History) append(b []byte, length int, block journal.Block, f Format) []byte {
	for len(b) < length {
		r, ok := block.Next()
		if !ok {
			x.off = block.To
			break
		}
		begins := !x.partial || r.Line.Message
		if begins && (x.begun >= x.most || x.size >= historyBytes) || x.size >= 2*historyBytes {
			x.end = x.off
			return b
		}
		if begins {
			b = x.beginLine(b, r.Line, f)
		}
		text := r.Line.Data
		if f != AsPlain {
			text, x.held = joined(x.held, r.Line)
		}
		if !r.Line.Partial && f != AsLines {
			text = append(text[:len(text):len(text)], '\n')
		}
		if f != AsPlain {
			text = quoted(text)
			x.size += len(text) + lineCost
		}
		b = append(b, text...)
		x.partial = r.Line.Partial && !r.Line.Message
		x.off = r.End
	}
	return b
}

func (x *History) beginLine(b []byte, l v1.Line, f Format) []byte {
	x.begun++
	at := l.At().UTC()
	switch f {
	case AsText:
		x.times = append(x.times, at.UnixNano())
	case AsLines:
		if b = x.endLine(b); x.begun > 1 {
			b = append(b, ',')
		}
		b = append(at.AppendFormat(append(b, `{"time":"`...), time.RFC3339Nano), `","data":"`...)
		x.open = true
	}
	return b
}

func (x *History) endLine(b []byte) []byte {
	if x.open {
		b = append(b, `"}`...)
	}
	x.open = false
	return b
}

// quoted returns text as the inside of a JSON string.
func quoted(text []byte) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(string(text)) // it cannot fail
	return b.Bytes()[1 : b.Len()-2]
}

// ReadHistory opens the last lines of a container that a query selects, at most 4 MiB of them as encoded.
// It waits for other readers of the container until ctx ends: then its error is ErrBusy.
func (h *Hub) ReadHistory(ctx context.Context, id string, q HistoryQuery) (*History, error) {
	c, err := h.console(id)
	if err != nil {
		return nil, err
	}
	return c.tail(ctx, q, c.journal.End().Offset)
}

// ReadHistory opens the last n lines before those that Take returns. A node-wide listener has none.
func (l *Listener) ReadHistory(ctx context.Context, n int) (*History, error) {
	if l.own == nil {
		return &History{}, nil
	}
	return l.own.console.tail(ctx, HistoryQuery{Tail: n}, l.start)
}

// ReadOn opens the lines that follow those that a client has read, at most n (10,000) and some 4 MiB of
// them as encoded: Line is then the place to read on. See ReadHistory.
func (h *Hub) ReadOn(ctx context.Context, id, role string, since Cursor, n int) (*History, error) {
	c, err := h.console(id)
	if err != nil {
		return nil, err
	}
	release, err := acquire(ctx, c.reading)
	if err != nil {
		return nil, err
	}
	defer release()
	p, err := c.find(role, since)
	return &History{console: c, role: role, off: p.off, held: p.held, missing: p.missing,
		end: c.journal.End().Offset, most: min(n, maxTail), hole: true}, err
}

// ReadAll opens all lines of a container that are kept. A container has a few such downloads at once. See
// ReadHistory.
func (h *Hub) ReadAll(ctx context.Context, id string) (*History, error) {
	c, err := h.console(id)
	if err != nil {
		return nil, err
	}
	release, err := acquire(ctx, c.downloads)
	if err != nil {
		return nil, err
	}
	return &History{console: c, end: c.journal.End().Offset, most: 1 << 62, release: release}, nil
}

// tail finds the last lines before an offset that a query selects.
func (c *console) tail(ctx context.Context, q HistoryQuery, end int64) (*History, error) {
	release, err := acquire(ctx, c.reading)
	if err != nil {
		return nil, err
	}
	defer release()
	j := c.journal
	if !q.Before.IsZero() {
		before, err := j.Seek(q.Role, q.Before)
		if err != nil {
			return nil, err
		}
		end = min(end, before)
	}
	x := &History{console: c, role: q.Role, off: end, end: end, most: maxTail}
	left, size := min(q.Tail, maxTail), 0
	var first journal.Record // of the line that is being read
	cost := 0                // of that line
	take := func() bool {    // the line is read: it is wanted if it is in the bounds
		left, size = left-1, size+cost
		if cost == 0 || left < 0 || size > historyBytes || !first.Line.At().After(q.Since) {
			return false
		}
		x.off = first.Offset
		return true
	}
	for r, err := range j.Backward(q.Role, end) {
		if err != nil {
			return nil, err
		}
		more := encodedSize(r.Line.Data)
		continues := cost > 0 && r.Line.Partial && !r.Line.Message && !first.Line.Message && cost+more <= historyBytes
		if cost > 0 && !continues {
			if !take() {
				return x, nil
			}
			cost = 0
		}
		first, cost = r, cost+more
	}
	take()
	return x, nil
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

// place is where a reader of a console begins.
type place struct {
	off     int64
	held    []byte // the beginning of a rune that is before it
	missing string // text of a message about lines that the reader does not get; empty: none
}

// find returns the place behind a cursor, or that of the oldest line that is kept if there is no such
// line.
func (c *console) find(role string, since Cursor) (p place, err error) {
	j := c.journal
	off, known, err := j.Find(since)
	if err != nil {
		return p, err
	}
	if known && !j.Removed(role, off) {
		p.off = off
		for r, err := range j.Backward(role, off) {
			if err == nil && r.End == off {
				_, p.held = joined(nil, r.Line)
			}
			return p, err
		}
		return p, nil
	}
	b, err := j.Read(role, off, j.End().Offset)
	if err != nil {
		return p, err
	}
	p.off = b.From
	if !known {
		p.missing = "the container has no console line at since_line: all lines that are kept follow"
	} else if oldest, ok := b.Next(); ok {
		before := oldest.Line.At().Add(-1).UTC()
		p.missing = "console lines up to " + before.Format(time.RFC3339Nano) + " are missing: they are no longer kept"
	}
	return p, nil
}
