package stream

import (
	"sync/atomic"
	"time"

	"berth/store/journal"
)

// cursor is the position of a listener in a console.
type cursor struct {
	log   *log
	l     *Listener
	other *cursor      // that of the container's other console
	from  position     // where it began
	ready atomic.Bool  // it is in the listener's queue of cursors with lines to read
	done  atomic.Int64 // number of lines that it has read

	// Next's own.
	pos  position
	held []byte
}

// attach puts a new cursor at the end of a console.
func (g *log) attach(l *Listener) *cursor {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &cursor{log: g, l: l, from: g.end, pos: g.end}
	c.done.Store(g.end.line)
	g.cursors[c] = struct{}{}
	g.watched.Add(1)
	return c
}

func (g *log) detach(c *cursor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, there := g.cursors[c]; !there {
		return
	}
	delete(g.cursors, c)
	g.watched.Add(-1)
	if len(g.cursors) == 0 {
		g.ring.clear()
	}
}

// wake notifies the listener that the console has lines to read. It never waits.
func (c *cursor) wake() {
	if !c.ready.Swap(true) {
		c.l.enqueue(c)
	}
}

// view is the lines that a console has for a cursor.
type view struct {
	end       position
	fragments []*fragment // from the ring; if none, read the journal up to limit
	limit     position
}

// look returns the lines behind the cursor. It uses the memory of scratch.
func (c *cursor) look(scratch []*fragment) view {
	g := c.log
	g.mu.Lock()
	defer g.mu.Unlock()
	v := view{end: g.end, limit: g.end}
	if c.pos.line == g.end.line {
		return v
	}
	var ok bool
	if v.fragments, ok = g.ring.from(c.pos, maxPiece, scratch); ok {
		return v
	}
	if len(g.ring.list) > 0 {
		v.limit = g.ring.list[0].from
	}
	return v
}

// read appends the console's next lines to a batch.
func (c *cursor) read(to *batch) {
	v := c.look(to.fragments[:0])
	to.fragments = v.fragments
	switch {
	case c.pos.line == v.end.line:
		return
	case len(v.fragments) > 0:
		c.fromRing(to, v.fragments)
	case !c.fromJournal(to, v):
		from, lines := c.line(), v.limit.line-c.pos.line
		c.pos, c.held = v.limit, nil
		to.dropped(c.log.id, lines, from, c.line())
	}
	c.done.Store(c.pos.line)
	if c.pos.line != v.end.line {
		c.wake()
	}
}

// fromRing appends fragments, up to the next message of berth, as one message.
func (c *cursor) fromRing(to *batch, list []*fragment) {
	if list[0].message {
		list = list[:1]
	}
	for i, f := range list {
		if f.message && i > 0 {
			list = list[:i]
			break
		}
	}
	to.begin(c.log.id, list[0].message)
	for _, f := range list {
		to.buf = append(to.buf, f.text...)
	}
	last := list[len(list)-1]
	c.pos, c.held = last.to, nil
	to.end(list[0].first, last.last, c.line())
}

// line returns how far the listener has read both consoles of the container.
func (c *cursor) line() (line LineCursor) {
	line.set(c.log.role, c.pos.at)
	line.set(c.other.log.role, c.other.pos.at)
	return line
}

// rewind moves a cursor back. It reads the disk to count the lines.
func (c *cursor) rewind(to start) error {
	if to.pos.off > c.from.off {
		return nil // the client has read a line that was printed after this cursor was made
	}
	lines, err := c.log.journal.Count(to.pos.off, c.from.off)
	if err != nil {
		return err
	}
	c.pos, c.held = to.pos, to.held
	c.pos.line = c.from.line - lines
	c.done.Store(c.pos.line)
	if lines > 0 {
		c.wake()
	}
	return nil
}

// fromJournal reads lines that the ring no longer has. It returns false if the
// journal no longer has them either.
func (c *cursor) fromJournal(to *batch, v view) bool {
	g := c.log
	block := to.read(g.journal, c.pos.off, v.limit.off)
	var first, last time.Time
	for to.size() < maxPiece {
		l, size, ok := journal.Next(block)
		if size == 0 || (l.Message && !first.IsZero()) {
			break
		}
		block = block[size:]
		c.pos.line, c.pos.off = c.pos.line+1, c.pos.off+int64(size)
		if !ok {
			continue
		}
		c.pos.at = l.At().UnixNano()
		if first.IsZero() {
			first = l.Time
			to.begin(g.id, l.Message)
		}
		to.buf = appendLine(to.buf, l, c.held)
		c.held, last = heldBack(l, c.held), l.At()
		if l.Message {
			break
		}
	}
	if first.IsZero() {
		return false
	}
	to.end(first, last, c.line())
	return true
}

// release removes every cursor: the console is removed.
func (g *log) release() {
	g.mu.Lock()
	cursors := g.cursors
	g.cursors = map[*cursor]struct{}{}
	g.ring.grow(-g.ring.size) // listeners that still read fragments release them
	g.watched.Store(0)
	g.mu.Unlock()
	for c := range cursors {
		c.l.drop(c)
	}
}
