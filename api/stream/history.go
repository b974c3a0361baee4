package stream

import (
	"context"
	"io"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/store/journal"
)

// ErrBusy is the error for lines that could not be read in time.
var ErrBusy = v1.Errorf(v1.Unavailable, "Too many clients read console history: try again")

// The bounds of what is read of a console.
const (
	maxTail      = 10_000  // lines of a history
	historyBytes = 4 << 20 // of a history, as encoded; only a longer line is cut
	downloads    = 4       // of all lines of one container, open at once
	downloadTime = time.Hour
)

// HistoryQuery selects the last lines of a container's console.
type HistoryQuery struct {
	Role          string    // of the lines; empty: those of the installer and of the server
	Tail          int       // lines, 10,000 at most
	Since, Before time.Time // exclusive; zero: no bound
}

// History is lines of a container's console: at most 10,000, and some 4 MiB of JSON.
type History struct {
	Lines   []v1.Line // oldest first. Parts are joined; one that is Partial still has no end
	Line    Cursor    // how far a client has read the console with them
	Missing string    // text of a message about lines before them that are no longer kept; empty: none
}

// ReadHistory returns the last lines of a container that a query selects.
func (h *Hub) ReadHistory(id string, q HistoryQuery) (History, error) {
	c, err := h.console(id)
	if err != nil {
		return History{}, err
	}
	return c.tail(q, c.journal.End().Offset)
}

// ReadHistory returns the last n lines before those that Take returns, of a container's listener.
func (l *Listener) ReadHistory(n int) (History, error) {
	return l.own.console.tail(HistoryQuery{Tail: n}, l.start)
}

// tail returns the last lines before an offset that a query selects.
func (c *console) tail(q HistoryQuery, end int64) (History, error) {
	j := c.journal
	if !q.Before.IsZero() {
		before, err := j.Seek(q.Role, q.Before)
		if err != nil {
			return History{}, err
		}
		end = min(end, before)
	}
	left, size := min(q.Tail, maxTail), 0
	var records []journal.Record // the newest first
	whole := 0                   // of them, those of lines in the bounds
	cost := 0                    // of the line that is being read
	take := func() bool {        // the line is read: it is wanted if it is in the bounds
		left, size = left-1, size+cost
		if cost == 0 || left < 0 || size > historyBytes || !records[len(records)-1].Line.At().After(q.Since) {
			return false
		}
		whole = len(records)
		return true
	}
	for r, err := range j.Backward(q.Role, end) {
		if err != nil {
			return History{}, err
		}
		more := encodedSize(r.Line.Data)
		continues := cost > 0 && continued(r.Line) && !records[len(records)-1].Line.Message && cost+more <= historyBytes
		if cost > 0 && !continues {
			if !take() {
				break
			}
			cost = 0
		}
		records, cost = append(records, r), cost+more
	}
	take()
	records = records[:whole]
	slices.Reverse(records)
	return History{Lines: joinedLines(records, nil), Line: j.Cursor(end)}, nil
}

// ReadOn returns the lines that follow those that a client has read, at most n: Line is then the place to read on.
func (h *Hub) ReadOn(id, role string, since Cursor, n int) (History, error) {
	c, err := h.console(id)
	if err != nil {
		return History{}, err
	}
	p, err := c.find(role, since)
	if err != nil {
		return History{}, err
	}
	var records []journal.Record
	off, end, size, begun := p.off, c.journal.End().Offset, 0, 0
	for r, err := range c.journal.Forward(role, off, end) {
		if err != nil {
			return History{}, err
		}
		begins := len(records) == 0 || r.Line.Message || !continued(records[len(records)-1].Line)
		hole := role == "" && len(records) > 0 && r.Offset > off // lines are no longer kept
		if hole || begins && (begun >= min(n, maxTail) || size >= historyBytes) || size >= 2*historyBytes {
			end = off
			break
		}
		if begins {
			begun++
		}
		records, off, size = append(records, r), r.End, size+encodedSize(r.Line.Data)
	}
	return History{Lines: joinedLines(records, p.held), Line: c.journal.Cursor(end), Missing: p.missing}, nil
}

// continued reports whether a record is a part of a line that the next one continues.
func continued(l v1.Line) bool { return l.Partial && !l.Message }

// joinedLines returns the lines of records. held is the beginning of a rune before the first.
func joinedLines(records []journal.Record, held []byte) []v1.Line {
	list := make([]v1.Line, 0, len(records))
	for i, r := range records {
		l := v1.Line{Time: r.Line.At().UTC(), Partial: r.Line.Partial}
		l.Data, held = joined(held, r.Line)
		if i > 0 && !r.Line.Message && continued(records[i-1].Line) {
			before := &list[len(list)-1]
			before.Data, before.Partial = append(slices.Clip(before.Data), l.Data...), l.Partial
			continue
		}
		list = append(list, l)
	}
	return list
}

// lineCost is the size of a line in the encoded history besides its data, in bytes.
const lineCost = 64

// encodedSize returns an upper bound of the size of a line in the encoded history.
func encodedSize(data []byte) int {
	size := lineCost + len(data)
	for _, c := range data {
		if c < ' ' || c >= 0x80 || c == '<' || c == '>' || c == '&' {
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

// Content is all lines of a container that are kept, as they were printed. It reads the journal as fast as a client
// receives, which costs a block if the client does not. The caller closes it.
type Content struct {
	console  *console
	off, end int64
	left     []byte // of the last block
	begun    bool
	until    time.Time
	release  func() // a permit
}

// lostText stands in a Content for lines that were removed before they were read.
const lostText = "[berth: console lines are missing: they were removed before this client received them]\n"

// ReadAll opens all lines of a container that are kept. A container has a few such downloads at once: the others wait
// until ctx ends, and then have ErrBusy.
func (h *Hub) ReadAll(ctx context.Context, id string) (*Content, error) {
	c, err := h.console(id)
	if err != nil {
		return nil, err
	}
	release, err := acquire(ctx, c.downloads)
	if err != nil {
		return nil, err
	}
	return &Content{console: c, end: c.journal.End().Offset, until: time.Now().Add(downloadTime), release: release}, nil
}

// Read reads the next bytes.
func (x *Content) Read(p []byte) (int, error) {
	for len(x.left) == 0 {
		if x.off >= x.end {
			return 0, io.EOF
		}
		if err := x.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, x.left)
	x.left = x.left[n:]
	return n, nil
}

// next reads the next block.
func (x *Content) next() error {
	if time.Now().After(x.until) {
		return context.DeadlineExceeded
	}
	x.console.reading <- struct{}{}
	defer func() { <-x.console.reading }()
	block, err := x.console.journal.Read("", x.off, x.end)
	if err != nil {
		return err
	}
	x.left = nil
	if x.begun && block.From > x.off {
		x.left = append(x.left, lostText...)
	}
	for r, ok := block.Next(); ok; r, ok = block.Next() {
		x.left = append(x.left, r.Line.Data...)
		if !r.Line.Partial {
			x.left = append(x.left, '\n')
		}
		x.begun = true
	}
	x.off = block.To
	return nil
}

// Close releases the permit. It is called once.
func (x *Content) Close() error {
	x.release()
	return nil
}
