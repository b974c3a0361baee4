package stream

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// HistoryQuery selects the last lines of a container's consoles.
type HistoryQuery struct {
	Role          string    // of the console; empty: both, in the order of their times
	Tail          int       // lines, 10,000 at most
	Since, Before time.Time // exclusive; zero: no bound
}

// ReadHistory opens the last lines of a container that a query selects, at most 4 MiB
// of them as encoded. If too many histories are open, it waits until ctx ends: then
// its error is ErrBusy. The caller closes the History.
func (h *Hub) ReadHistory(ctx context.Context, id string, q HistoryQuery) (*History, error) {
	x, err := openHistory(ctx, h, id, q.Role)
	if err != nil {
		return nil, err
	}
	return x, x.read(ctx, func() error { return x.findTail(q) })
}

// ReadOn opens the lines that follow those that a client has read, at most n (10,000)
// and some 4 MiB of them as encoded: History.Line is then the place to read on. See
// ReadHistory.
func (h *Hub) ReadOn(ctx context.Context, id, role string, since LineCursor, n int) (*History, error) {
	x, err := openHistory(ctx, h, id, role)
	if err != nil {
		return nil, err
	}
	x.bounded, x.most = true, min(n, maxTail)
	return x, x.read(ctx, func() error { return x.findStart(since) })
}

// ReadAll opens all lines of a container that are kept. Its permit is one of a few of
// the container: a slow download keeps no other container from its history. See
// ReadHistory.
func (h *Hub) ReadAll(ctx context.Context, id string) (*History, error) {
	c, err := h.consoles(id)
	if err != nil {
		return nil, err
	}
	x, err := newHistory(ctx, h, c.downloads, c.parts(""))
	if err != nil {
		return nil, err
	}
	for _, p := range x.parts {
		p.off, p.at = p.log.journal.Oldest()
	}
	return x, nil
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
			parts = append(parts, newPart(c.log, c.from))
		}
	}
	x, err := newHistory(ctx, l.hub, l.hub.histories, parts)
	if err != nil {
		return nil, err
	}
	return x, x.read(ctx, func() error { return x.findTail(HistoryQuery{Tail: n}) })
}

func openHistory(ctx context.Context, h *Hub, id, role string) (*History, error) {
	c, err := h.consoles(id)
	if err != nil {
		return nil, err
	}
	return newHistory(ctx, h, h.histories, c.parts(role))
}

// parts returns the consoles of a role, or both if it is empty, up to their ends.
func (c *consoles) parts(role string) (parts []*part) {
	for _, g := range c.both() {
		if role == "" || role == g.role {
			parts = append(parts, newPart(g, g.position()))
		}
	}
	return parts
}

// newHistory waits for one of the permits.
func newHistory(ctx context.Context, h *Hub, permits chan struct{}, parts []*part) (*History, error) {
	select {
	case permits <- struct{}{}:
	case <-ctx.Done():
		return nil, ErrBusy
	}
	return &History{hub: h, parts: parts, close: sync.OnceFunc(func() { <-permits })}, nil
}

// read calls find, which reads the disk. After an error the history is closed.
func (x *History) read(ctx context.Context, find func() error) error {
	done, err := x.readDisk(ctx)
	if err == nil {
		err = find()
		done()
	}
	if err != nil {
		x.Close()
	}
	return err
}

// findStart finds where the lines behind a cursor begin.
func (x *History) findStart(since LineCursor) error {
	var starts []start
	for _, p := range x.parts {
		s, err := p.log.start(since.of(p.log.role))
		if err != nil {
			return err
		}
		p.off, p.at, p.held = min(s.pos.off, p.end), s.pos.at, s.held
		starts = append(starts, s)
	}
	x.missing = missingText(starts...)
	return nil
}

// findTail finds the last lines that a query selects. It reads the consoles backward,
// always the one with the newer line.
func (x *History) findTail(q HistoryQuery) error {
	lines := make([]*backward, 0, len(x.parts))
	for _, p := range x.parts {
		if err := p.endBefore(q.Before); err != nil {
			return err
		}
		b := readBackward(p)
		defer b.stop()
		lines = append(lines, b)
	}
	size := 0
	for n := min(q.Tail, maxTail); n > 0; n-- {
		var newest *backward
		for _, b := range lines {
			if err := b.fill(); err != nil {
				return err
			}
			if b.more && (newest == nil || b.span.at.After(newest.span.at)) {
				newest = b
			}
		}
		if newest == nil || !newest.span.at.After(q.Since) {
			return nil
		}
		if size += newest.span.size; size > historyBytes {
			return nil
		}
		newest.part.off, newest.read = newest.span.off, false
	}
	return nil
}

// span is a line, or a part of a very long one, in a journal.
type span struct {
	at   time.Time // of its first record, as v1.Line.At
	off  int64
	size int // as encoded, an upper bound
}

// backward reads the lines of a part, the newest first.
type backward struct {
	part *part
	next func() (span, error, bool)
	stop func()

	span span
	more bool // span is a line
	read bool // span was not taken yet, or there is no more line
}

func readBackward(p *part) *backward {
	b := &backward{part: p}
	b.next, b.stop = iter.Pull2(p.spans())
	return b
}

// fill makes span the next line unless it was not taken yet.
func (b *backward) fill() (err error) {
	if b.read {
		return nil
	}
	b.read = true
	b.span, err, b.more = b.next()
	return err
}

// spans yields the lines of a part, the newest first. An error comes alone and last.
func (p *part) spans() iter.Seq2[span, error] {
	return func(yield func(span, error) bool) {
		var s span
		message := false // s begins with a message of berth
		for r, err := range p.log.journal.Backward(p.end) {
			if err != nil {
				yield(span{}, err)
				return
			}
			size := encodedSize(r.Line.Data)
			continues := s.size > 0 && r.Line.Partial && !r.Line.Message && !message && s.size+size <= historyBytes
			if s.size > 0 && !continues {
				if !yield(s, nil) {
					return
				}
				s.size = 0
			}
			s = span{at: r.Line.At(), off: r.Offset, size: s.size + size}
			message = r.Line.Message
		}
		if s.size > 0 {
			yield(s, nil)
		}
	}
}

// endBefore makes a part end before the first line that is not before a time.
func (p *part) endBefore(at time.Time) error {
	if at.IsZero() {
		return nil
	}
	end, err := p.log.journal.Seek(at)
	if err != nil {
		return err
	}
	p.end = min(end, p.end)
	p.off = p.end
	_, p.at = p.log.journal.Oldest()
	for r, err := range p.log.journal.Backward(p.end) {
		if err != nil {
			return err
		}
		p.at = lineTime(r.Line)
		break
	}
	return nil
}

func lineTime(l v1.Line) int64 { return l.At().UnixNano() }
