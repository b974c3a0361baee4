package stream

import (
	"context"
	"time"

	v1 "berth/api/v1"
)

// ErrBusy is the error for history that could not be opened in time.
var ErrBusy = v1.Errorf(v1.Unavailable, "Too many clients read console history: try again")

// The bounds of histories.
const (
	historyBytes = 4 << 20 // as encoded
	histories    = 512     // open at once; each may hold a piece of maxPiece
	downloads    = 4       // of all lines of one container, open at once
	diskReaders  = 16      // that read a journal at once; each holds two blocks
)

// format is how a History writes its lines.
type format int

const (
	asText  format = iota // the inside of a JSON string; each complete line ends with a line feed
	asLines               // the inside of a JSON array of {time, data}
	asPlain               // bytes as they were printed; each complete line ends with a line feed
)

// History is lines of a container's consoles, read from the journal piece by piece
// while they are sent: a client that does not read costs one piece of some 16 KiB,
// and a few bytes for each line's time. It is for one goroutine.
type History struct {
	hub     *Hub
	format  format
	parts   []*part
	missing string
	bounded bool // the lines end after most or historyBytes
	most    int
	sent    int   // bytes of all pieces
	current *part // of the line that has begun
	begun   int   // number of lines that have begun
	open    bool  // a JSON object has begun
	times   times // of the lines asText
	close   func()
}

// Missing returns the text of a message about lines that the history lacks, because
// they are no longer kept or its cursor is unknown. It is empty if there are none.
func (x *History) Missing() string { return x.missing }

// Line returns how far a client has read the consoles with everything that was
// returned so far. A console that was not requested counts as not read.
func (x *History) Line() (c LineCursor) {
	for _, p := range x.parts {
		c.set(p.log.role, p.at)
	}
	return c
}

// Close releases the permit of the history. It may be called again.
func (x *History) Close() { x.close() }

// readDisk waits for a permit to read journals; done releases it. readers is the turn
// of the container's readers, log.readers; nil for a reader that is not a client.
func readDisk(ctx context.Context, h *Hub, readers turn) (done func(), err error) {
	due, err := readers.take(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case h.readers <- struct{}{}:
		began := time.Now()
		return func() { <-h.readers; readers.leave(due, began) }, nil
	case <-ctx.Done():
		readers.pass(due)
		return nil, ErrBusy
	}
}

// readDisk is the function of that name for the container of the history.
func (x *History) readDisk(ctx context.Context) (done func(), err error) {
	if len(x.parts) == 0 {
		return readDisk(ctx, x.hub, nil)
	}
	return readDisk(ctx, x.hub, x.parts[0].log.readers)
}

// NextText appends the next piece of the lines as the inside of a JSON string, or
// nothing at the end. Each complete line ends with a line feed.
func (x *History) NextText(ctx context.Context, b []byte) ([]byte, error) {
	return x.next(ctx, b, asText)
}

// NextTimes appends the next piece of the inside of a JSON array with the times of
// the lines that NextText has returned, or nothing at the end.
func (x *History) NextTimes(b []byte) []byte { return x.times.next(b) }

// NextLines appends the next piece of the lines as the inside of a JSON array of
// {time, data}, or nothing at the end.
func (x *History) NextLines(ctx context.Context, b []byte) ([]byte, error) {
	return x.next(ctx, b, asLines)
}

// NextPlain appends the next piece of the lines as they were printed, or nothing at
// the end. Each complete line ends with a line feed.
func (x *History) NextPlain(ctx context.Context, b []byte) ([]byte, error) {
	return x.next(ctx, b, asPlain)
}

func (x *History) next(ctx context.Context, b []byte, f format) ([]byte, error) {
	x.format = f
	done, err := x.readDisk(ctx)
	if err != nil {
		return b, err
	}
	defer done()
	for _, p := range x.parts {
		defer p.release(&x.hub.blocks)
	}
	from := len(b)
	for len(b)-from < maxPiece {
		p, err := x.choose()
		if err != nil {
			return b, err
		}
		if p == nil || x.ends(p, x.sent+len(b)-from) {
			return x.endLine(x.reportLost(b)), nil
		}
		b = x.append(b, p, from+maxPiece)
	}
	x.sent += len(b) - from
	return b, nil
}

// ends reports whether the record of p is beyond the bounds of the history, if some
// bytes were sent already. Only a very long line is cut.
func (x *History) ends(p *part, sent int) bool {
	if !x.bounded || p.used > 0 {
		return false
	}
	return p != x.current && (x.begun >= x.most || sent >= historyBytes) || sent >= 2*historyBytes
}

// choose returns the part with the next record: that of the line that has begun,
// else the one with the older record, or nil at the end.
func (x *History) choose() (next *part, err error) {
	for _, p := range x.parts {
		more, err := p.peek(&x.hub.blocks)
		if err != nil {
			return nil, err
		}
		if !more {
			continue
		}
		if p == x.current {
			return p, nil
		}
		if next == nil || p.line.At().Before(next.line.At()) {
			next = p
		}
	}
	return next, nil
}

// append appends as much of the record of p as fits.
func (x *History) append(b []byte, p *part, limit int) []byte {
	if p.used == 0 && (!p.partial || p.line.Message) {
		b = x.beginLine(b, p)
	}
	b = p.appendSome(b, limit, x.format)
	if p.used < len(p.text) {
		return b
	}
	if !p.line.Partial {
		b = append(b, x.format.lineEnd()...)
	}
	p.consume()
	x.current = nil
	if p.partial {
		x.current = p
	}
	return b
}

// lineEnd returns what follows a complete line.
func (f format) lineEnd() string {
	switch f {
	case asText:
		return `\n`
	case asPlain:
		return "\n"
	}
	return ""
}

func (x *History) beginLine(b []byte, p *part) []byte {
	x.begun++
	switch x.format {
	case asText:
		x.times.add(p.line.At())
	case asLines:
		b = x.endLine(b)
		if x.begun > 1 {
			b = append(b, ',')
		}
		b = append(b, `{"time":"`...)
		b = p.line.At().UTC().AppendFormat(b, time.RFC3339Nano)
		b = append(b, `","data":"`...)
		x.open = true
	}
	return x.reportLost(b)
}

// reportLost appends a line to a plain history if lines before the next one are lost.
func (x *History) reportLost(b []byte) []byte {
	for _, p := range x.parts {
		if p.lost && x.format == asPlain {
			b = append(b, lostText...)
			p.lost = false
		}
	}
	return b
}

// lostText stands in a plain history for lines that rotation has removed before they
// were sent.
const lostText = "[berth: console lines are missing: they were removed before this client received them]\n"

func (x *History) endLine(b []byte) []byte {
	if x.open {
		b = append(b, `"}`...)
	}
	x.open = false
	return b
}
