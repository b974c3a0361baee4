package stream

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// ErrBusy is the error for history that could not be opened in time.
var ErrBusy = v1.Errorf(v1.Unavailable, "Too many clients read console history: try again")

// The bounds of histories.
const (
	historyBytes = 4 << 20 // of one console, as encoded
	histories    = 512     // open at once; each may hold a piece of maxPiece
	diskReaders  = 16      // that read a journal at once; each holds two blocks
)

// History is the last lines of a container's consoles, read from the journal
// piece by piece while they are sent: a client that does not read costs one piece of
// some 16 KiB. It is for one goroutine.
type History struct {
	hub     *Hub
	lines   bool // write JSON objects instead of text
	parts   []*part
	current *part // of the line that has begun
	skip    int   // number of lines to leave out
	begun   int   // number of lines that have begun
	open    bool  // a JSON object has begun
	close   func()
}

// ReadHistory opens the last n lines (10,000 and 4 MiB as encoded at most) of a
// console that are not older than since. An empty role means both consoles, in the
// order of time. If too many histories are open, it waits until ctx ends: then its
// error is ErrBusy. The caller closes the History.
func (h *Hub) ReadHistory(ctx context.Context, id, role string, n int, since time.Time) (*History, error) {
	list := []string{role}
	if role == "" {
		list = roles()
	}
	var parts []*part
	for _, role := range list {
		g, err := h.console(id, role)
		if err != nil {
			return nil, err
		}
		parts = append(parts, &part{journal: g.journal, end: g.position().off})
	}
	return openHistory(ctx, h, parts, n, since)
}

// ReadHistory opens the last n lines before those that Next returns, of both
// consoles of the container. A node-wide listener has none. The caller closes the
// History.
func (l *Listener) ReadHistory(ctx context.Context, n int) (*History, error) {
	l.mu.Lock()
	cursors := slices.Clone(l.cursors)
	l.mu.Unlock()
	var parts []*part
	if l.id != "" {
		for _, c := range cursors {
			parts = append(parts, &part{journal: c.log.journal, end: c.from.off})
		}
	}
	return openHistory(ctx, l.hub, parts, n, time.Time{})
}

func openHistory(ctx context.Context, h *Hub, parts []*part, n int, since time.Time) (*History, error) {
	select {
	case h.histories <- struct{}{}:
	case <-ctx.Done():
		return nil, ErrBusy
	}
	x := &History{hub: h, parts: parts, close: sync.OnceFunc(func() { <-h.histories })}
	if err := x.find(ctx, n, since); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// find finds where each console's last lines begin.
func (x *History) find(ctx context.Context, n int, since time.Time) error {
	done, err := readDisk(ctx, x.hub)
	if err != nil {
		return err
	}
	defer done()
	found := 0
	for _, p := range x.parts {
		lines, err := p.find(n, since)
		if err != nil {
			return err
		}
		found += lines
	}
	x.skip = max(0, found-n)
	return nil
}

// readDisk waits for a permit to read journals; done releases it.
func readDisk(ctx context.Context, h *Hub) (done func(), err error) {
	select {
	case h.readers <- struct{}{}:
		return func() { <-h.readers }, nil
	case <-ctx.Done():
		return nil, ErrBusy
	}
}

// Close releases the permit of the history. It may be called again.
func (x *History) Close() { x.close() }

// NextText appends the next piece of the lines as the inside of a JSON string, or
// nothing at the end. Each complete line ends with a line feed.
func (x *History) NextText(ctx context.Context, b []byte) ([]byte, error) { return x.next(ctx, b) }

// NextLines appends the next piece of the lines as the inside of a JSON array of
// {time, data}, or nothing at the end.
func (x *History) NextLines(ctx context.Context, b []byte) ([]byte, error) {
	x.lines = true
	return x.next(ctx, b)
}

func (x *History) next(ctx context.Context, b []byte) ([]byte, error) {
	done, err := readDisk(ctx, x.hub)
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
		if p == nil {
			return x.endLine(b), nil
		}
		b = x.append(b, p, from+maxPiece)
	}
	return b, nil
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
		if next == nil || p.line.Time.Before(next.line.Time) {
			next = p
		}
	}
	return next, nil
}

// append appends as much of the record of p as fits, unless its line is left out.
func (x *History) append(b []byte, p *part, limit int) []byte {
	if p.used == 0 && (!p.partial || p.line.Message) {
		b = x.beginLine(b, p.line)
	}
	if x.begun > x.skip {
		b = p.appendSome(b, limit)
	} else {
		p.used = len(p.text)
	}
	if p.used < len(p.text) {
		return b
	}
	if x.begun > x.skip && !x.lines && !p.line.Partial {
		b = append(b, '\\', 'n')
	}
	p.consume()
	x.current = nil
	if p.partial {
		x.current = p
	}
	return b
}

func (x *History) beginLine(b []byte, l v1.Line) []byte {
	x.begun++
	if !x.lines || x.begun <= x.skip {
		return b
	}
	b = x.endLine(b)
	if x.begun > x.skip+1 {
		b = append(b, ',')
	}
	b = append(b, `{"time":"`...)
	b = l.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	x.open = true
	return append(b, `","data":"`...)
}

func (x *History) endLine(b []byte) []byte {
	if x.open {
		b = append(b, `"}`...)
	}
	x.open = false
	return b
}
