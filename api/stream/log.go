package stream

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	v1 "berth/api/v1"
)

// position is a place in a console: how many lines were written since it was
// loaded, and the offset in the journal behind the last of them.
type position struct{ line, off int64 }

// log is one console: its journal and what is in memory of it.
type log struct {
	id    string
	files files
	size  int64 // of a file, at which it is rotated

	watched atomic.Int32 // cursors; while there are none, nothing is encoded

	mu         sync.Mutex // never held over the disk
	segs       []segment  // oldest first
	end        position
	last       time.Time // of the newest line; the writer alone changes it
	checkpoint checkpoint
	ring       ring
	cursors    map[*cursor]struct{}

	// The writer's own.
	file    *os.File // nil: not open
	buf     []byte
	held    []byte // the beginning of a rune that the next partial line ends
	missing gap
}

// gap is what could not be written: to the journal it is told when writing works again.
type gap struct{ from, to time.Time }

// loadLog reads where a console's journal ends. It changes nothing.
func loadLog(id string, f files, size int64, r ring) (*log, error) {
	segs, err := f.load()
	if err != nil {
		return nil, fmt.Errorf("console of container %s: %w", id, err)
	}
	g := &log{id: id, files: f, size: size, segs: segs, checkpoint: readCheckpoint(f.checkpointPath()), ring: r, cursors: map[*cursor]struct{}{}}
	if len(segs) > 0 {
		g.end.off = segs[len(segs)-1].end
	}
	lines, err := g.tail(lastLines, time.Time{}, g.end.off)
	if err != nil {
		return nil, fmt.Errorf("console of container %s: %w", id, err)
	}
	g.last = newest(time.Time{}, lines)
	return g, nil
}

// lastLines is how many lines are looked at to find the last time: lines of
// stdout and stderr may be out of order by a little.
const lastLines = 64

// newest is the latest time of lines that are the container's.
func newest(last time.Time, lines []v1.Line) time.Time {
	for _, l := range lines {
		if !l.Message && l.Time.After(last) {
			last = l.Time
		}
	}
	return last
}

// begin notes which of the engine's containers is read from now on.
func (g *log) begin(container string) (v1.Resume, error) {
	g.mu.Lock()
	was, last := g.checkpoint, g.last
	now := checkpoint{container: container, after: was.after}
	if was.container != "" && was.container != container { // without a note, what is there may be of this one
		now.after = unixNano(last)
	}
	g.checkpoint = now
	g.mu.Unlock()
	resume := v1.Resume{Last: last, Container: was.container, Whole: was.whole, Fresh: unixNano(last) <= now.after}
	if was == now {
		return resume, nil
	}
	if err := os.MkdirAll(g.files.dir, 0o700); err != nil {
		return resume, err
	}
	return resume, now.write(g.files.checkpointPath())
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// finish lets go of the file.
func (g *log) finish(whole bool) error {
	var err error
	if g.file != nil {
		err = g.file.Close()
		g.file = nil
	}
	g.buf = nil
	if !whole {
		return err
	}
	g.mu.Lock()
	g.checkpoint.whole = true
	n := g.checkpoint
	g.mu.Unlock()
	return errors.Join(err, n.write(g.files.checkpointPath()))
}

// append writes lines and hands them to whoever listens. What cannot be written
// is handed on all the same.
func (g *log) append(lines []v1.Line) error {
	err := g.reportMissing()
	b := g.build(lines)
	from := g.position()
	off := from.off
	if err == nil {
		off, err = g.write(b.records, from.off)
	}
	if err != nil {
		g.lose(lines)
	}
	g.publish(b, from, position{from.line + b.lines, off}, newest(g.last, lines))
	return err
}

// reportMissing puts a message in the place of what could not be written before.
func (g *log) reportMissing() error {
	if g.missing == (gap{}) {
		return nil
	}
	l := g.missing.line()
	b := g.build([]v1.Line{l})
	from := g.position()
	off, err := g.write(b.records, from.off)
	if err != nil {
		return err
	}
	g.missing = gap{}
	g.publish(b, from, position{from.line + b.lines, off}, g.last)
	return nil
}

func (g *log) build(lines []v1.Line) *builder {
	b := &builder{records: g.buf[:0], text: g.watched.Load() > 0, held: g.held}
	for _, l := range lines {
		split(l, b.add)
	}
	b.close()
	g.held = b.held
	if g.buf = b.records; cap(g.buf) > maxPiece {
		g.buf = nil // what a flood needed is not kept
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
}

func (m gap) line() v1.Line {
	text := fmt.Sprintf("console output between %s and %s is missing: it could not be written",
		m.from.UTC().Format(time.RFC3339), m.to.UTC().Format(time.RFC3339))
	return v1.Line{Time: m.to, Data: []byte(text), Message: true}
}

// write appends records to the journal and returns its new end.
func (g *log) write(records []byte, off int64) (int64, error) {
	s, err := g.writable(int64(len(records)))
	if err != nil {
		return off, err
	}
	if _, err := g.file.WriteAt(records, s.end-s.start); err != nil {
		// What was written in part is cut off when the file is opened again.
		err = errors.Join(err, g.file.Close())
		g.file = nil
		return off, err
	}
	return s.end + int64(len(records)), nil
}

// writable opens the newest file, or rotates it when it would grow too large.
func (g *log) writable(more int64) (segment, error) {
	if g.file == nil {
		if err := g.open(); err != nil {
			return segment{}, err
		}
	}
	s := g.newest()
	if s.end == s.start || s.end-s.start+more <= g.size {
		return s, nil
	}
	err := g.file.Close()
	g.file = nil
	if err != nil {
		return segment{}, err
	}
	if err := g.files.shift(); err != nil {
		return segment{}, err
	}
	if err := g.open(); err != nil {
		return segment{}, err
	}
	return g.newest(), nil
}

// open opens the file to write, and cuts off what follows its last whole
// record. A file that is not the newest segment begins a new one.
func (g *log) open() error {
	file, info, err := g.files.create()
	if err != nil {
		return err
	}
	s := g.newest()
	known := s.info != nil && os.SameFile(s.info, info)
	size := int64(0)
	if known {
		size = s.end - s.start
	}
	if err := file.Truncate(size); err != nil {
		return errors.Join(err, file.Close())
	}
	g.file = file
	g.files.trim()
	if !known {
		g.mu.Lock()
		g.segs = append(g.segs, segment{info: info, start: g.end.off, end: g.end.off})
		g.segs = g.segs[max(0, len(g.segs)-g.files.count):]
		g.mu.Unlock()
	}
	return nil
}

func (g *log) newest() segment {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.segs) == 0 {
		return segment{}
	}
	return g.segs[len(g.segs)-1]
}

// publish makes lines visible to readers and wakes whoever listens.
func (g *log) publish(b *builder, from, end position, last time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end, g.last = end, last
	if n := len(g.segs); n > 0 {
		g.segs[n-1].end = end.off
	}
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
