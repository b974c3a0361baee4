package stream

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "berth/api/v1"
	"berth/store/journal"
)

// position is a place in a console: the number of lines written since it was
// opened, and the offset in the journal behind the last of them.
type position struct {
	line, off int64
	at        int64 // time, as v1.Line.At, of the last line before it in the journal, Unix ns; 0: none
}

func (p position) same(q position) bool { return p.line == q.line && p.off == q.off }

// clock makes the times of a container's lines, those of both consoles, rise strictly.
type clock struct {
	mu   sync.Mutex
	last time.Time
}

// log is one console: its journal and what is in memory of it.
type log struct {
	id      string
	role    string
	times   *clock
	journal *journal.Journal
	readers turn // of the container

	watched atomic.Int32 // cursors; while there are none, nothing is encoded

	mu      sync.Mutex // never held over the disk
	end     position
	ring    ring
	cursors map[*cursor]struct{}

	// The writer's own.
	buf     []byte
	held    []byte // the beginning of a rune that the next partial line completes
	missing gap
}

// gap is the lines that could not be written. A message takes their place in the
// journal once it can be written again.
type gap struct{ from, to time.Time }

func newLog(id, role string, j *journal.Journal, times *clock, readers turn, r ring) *log {
	end := position{off: j.End(), at: j.Last()}
	return &log{id: id, role: role, journal: j, times: times, readers: readers, end: end, ring: r, cursors: map[*cursor]struct{}{}}
}

// finish closes the journal's file.
func (g *log) finish(complete bool) error {
	g.buf = nil
	return g.journal.Finish(complete)
}

// append writes lines and hands them to the listeners, also those that could not
// be written.
func (g *log) append(lines []v1.Line) error {
	err := g.reportMissing()
	b := g.build(lines)
	from := g.position()
	off := from.off
	if err == nil {
		off, err = g.write(b.records, lines, off)
	}
	if err != nil {
		g.lose(lines)
	}
	g.publish(b, from, b.end(from, off))
	return err
}

// reportMissing writes a message in place of the lines that could not be written.
func (g *log) reportMissing() error {
	if g.missing == (gap{}) {
		return nil
	}
	l := g.missing.line()
	b := g.build([]v1.Line{l})
	from := g.position()
	off, err := g.write(b.records, nil, from.off)
	if err != nil {
		return err
	}
	g.missing = gap{}
	g.publish(b, from, b.end(from, off))
	return nil
}

// write returns the journal's end, which is off after an error.
func (g *log) write(records []byte, lines []v1.Line, off int64) (int64, error) {
	end, err := g.journal.Write(records, lines)
	if err != nil {
		return off, err
	}
	return end, nil
}

func (g *log) build(lines []v1.Line) *builder {
	g.times.mu.Lock()
	b := &builder{records: g.buf[:0], text: g.watched.Load() > 0, held: g.held, last: g.times.last}
	for _, l := range lines {
		journal.Split(l, b.add)
	}
	g.times.last = b.last
	g.times.mu.Unlock()
	b.close()
	g.held = b.held
	if g.buf = b.records; cap(g.buf) > maxPiece {
		g.buf = nil // memory for a flood is not kept
	}
	return b
}

func (g *log) position() position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.end
}

func (g *log) lose(lines []v1.Line) {
	if g.missing.from.IsZero() {
		g.missing.from = lines[0].Time
	}
	g.missing.to = lines[len(lines)-1].Time
	g.journal.Skip(lines)
}

func (m gap) line() v1.Line {
	text := fmt.Sprintf("console output between %s and %s is missing: it could not be written",
		m.from.UTC().Format(time.RFC3339), m.to.UTC().Format(time.RFC3339))
	return v1.Line{Time: m.to, Data: []byte(text), Message: true}
}

// publish makes lines visible to readers and wakes the listeners.
func (g *log) publish(b *builder, from, end position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end = end
	if len(g.cursors) == 0 {
		g.ring.clear()
		return
	}
	read := end.line
	for c := range g.cursors {
		read = min(read, c.done.Load())
		c.wake()
	}
	g.ring.push(b, from, end, read)
}

// behind returns the position of a builder as that of its console, whose lines were
// written between two positions.
func (p position) behind(from, end position) position {
	p.line += from.line
	if p.off += from.off; p.off == from.off || end.off == from.off {
		p.off, p.at = from.off, from.at
	}
	return p
}
