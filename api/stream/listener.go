package stream

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	v1 "berth/api/v1"
	"berth/store/journal"
)

// Bounds of a listener.
const (
	maxTake   = 16 << 10 // bytes of lines at which Take returns; a client that does not read holds them
	maxEvents = 1024     // state events waiting for a listener
)

// Listener is one client of the hub. Take and Line are for one goroutine; the other methods are for any.
type Listener struct {
	hub   *Hub
	id    string  // of the container; empty: node-wide
	own   *reader // of the container; nil: node-wide
	start int64   // offset of own at which the listener began

	mu      sync.Mutex // held for a few words of memory only
	readers map[*console]*reader
	ready   []*reader   // a queue: those with lines to read
	events  []*v1.Event // oldest first
	after   uint64      // seq of the last event that the client has
	stats   map[string]v1.Stats
	err     error // ended it
	signal  chan struct{}
}

// reader is how far a listener has read a console. All but queued is for the goroutine of Take.
type reader struct {
	console *console
	journal.Position
	held   []byte // the beginning of a rune that the next partial line completes
	queued bool   // in Listener.ready
}

// After leaves out the state events up to a sequence number: the client has them.
// It is called before Take.
func (l *Listener) After(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after = max(l.after, seq)
	l.events = slices.DeleteFunc(l.events, func(e *v1.Event) bool { return e.Seq <= l.after })
}

// Ready is received from when Take may have something to return.
func (l *Listener) Ready() <-chan struct{} { return l.signal }

// Take returns the messages that are waiting, up to some 16 KiB of lines. State events come before newer
// lines. Its error is that of ctx, ErrSlow, ErrGone or ErrClosed; the last two come after all messages.
func (l *Listener) Take(ctx context.Context) (list []Message, err error) {
	events, stats, err := l.dequeue()
	if err == ErrSlow {
		return nil, err
	}
	var lines []Message
	first := time.Time{}
	for size := 0; size < maxTake; {
		r := l.nextReady()
		if r == nil {
			break
		}
		b, err := l.read(ctx, r)
		if err != nil {
			return nil, err
		}
		if len(lines) == 0 {
			first = b.first
		}
		lines, size = append(lines, b.list...), size+b.size
		if b.more {
			l.queue(r.console, r.Position)
		}
	}
	older := 0
	for older < len(events) && !events[older].Time.After(first) {
		older++
	}
	message := EventMessage
	if l.id == "" {
		message = NodeMessage
	}
	for i, e := range events {
		if i == older {
			list = append(list, lines...)
		}
		list = append(list, message(e))
	}
	if older == len(events) {
		list = append(list, lines...)
	}
	for id, s := range stats {
		if l.id != "" {
			id = ""
		}
		list = append(list, StatsMessage(id, s, l.hub.options.Now()))
	}
	if len(list) > 0 {
		l.wakeAgain()
		return list, nil
	}
	return nil, err
}

// Close ends the listener: Take returns ErrClosed.
func (l *Listener) Close() {
	l.hub.remove(l)
	l.end(ErrClosed)
}

// dequeue returns the queued events and samples.
func (l *Listener) dequeue() (events []*v1.Event, stats map[string]v1.Stats, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, l.events = l.events, nil
	if l.err == ErrGone {
		l.ready = nil // the journal is removed
	}
	if len(l.stats) > 0 {
		stats, l.stats = l.stats, map[string]v1.Stats{}
	}
	return events, stats, l.err
}

// nextReady returns the next reader with lines to read, or nil.
func (l *Listener) nextReady() *reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) == 0 {
		return nil
	}
	r := l.ready[0]
	l.ready = slices.Delete(l.ready, 0, 1)
	r.queued = false
	return r
}

// queue adds the reader of a console to those that are ready: it has lines behind a position.
func (l *Listener) queue(c *console, from journal.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.readers[c]
	if r == nil {
		r = &reader{console: c, Position: from}
		l.readers[c] = r
	}
	if !r.queued {
		r.queued = true
		l.ready = append(l.ready, r)
	}
	l.wake()
}

// forget removes the reader of a console that is removed.
func (l *Listener) forget(c *console) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.readers, c)
	l.ready = slices.DeleteFunc(l.ready, func(r *reader) bool { return r.console == c })
}

func (l *Listener) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// wakeAgain wakes if something is left for the next Take.
func (l *Listener) wakeAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) > 0 || l.err != nil {
		l.wake()
	}
}

func (l *Listener) putEvent(e *v1.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil, e.Seq != 0 && e.Seq <= l.after:
		return
	case len(l.events) >= maxEvents:
		l.err, l.events = ErrSlow, nil
	default:
		l.events = append(l.events, e)
	}
	l.wake()
}

func (l *Listener) putStats(id string, s v1.Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats[id] = s
	l.wake()
}

// end makes Take return err after the messages that are waiting.
func (l *Listener) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.wake()
}

// Line returns how far the client of a container's listener has read after the last call of Take.
func (l *Listener) Line() Cursor {
	if l.own == nil {
		return Cursor{}
	}
	return l.own.console.journal.Cursor(l.own.Offset)
}

// rewind moves the listener of a container to where its client has read. See Hub.ListenFrom.
func (l *Listener) rewind(ctx context.Context, since Cursor) (missing string, err error) {
	c := l.own.console
	release, err := acquire(ctx, c.reading)
	if err != nil {
		return "", err
	}
	defer release()
	at, err := c.find("", since)
	if err != nil {
		return "", err
	}
	end := c.journal.End()
	behind, err := c.journal.Count(at.off, end.Offset)
	if err != nil {
		return "", err
	}
	l.own.Position, l.own.held = journal.Position{Offset: at.off, Line: end.Line - behind}, at.held
	l.queue(c, l.own.Position)
	return at.missing, nil
}

// batch is the messages of lines that were read together.
type batch struct {
	list  []Message
	size  int       // bytes of their data
	first time.Time // of the first line
	more  bool      // the console has more lines
}

// run is lines that become one message.
type run struct {
	event   string
	text    []byte
	times   []time.Time // of the lines
	partial bool        // the last one continues
	end     int64       // offset
	at      time.Time
}

// timeSize is the size of a line's time in a message, in bytes.
const timeSize = 32

// read returns the next lines of a console as messages: output together, each message of berth alone.
func (l *Listener) read(ctx context.Context, r *reader) (b batch, err error) {
	turn := r.console.reading
	if l.id == "" {
		turn = r.console.nodeWide
	}
	release, err := acquire(ctx, turn)
	if err != nil {
		return b, ctx.Err()
	}
	defer release()
	j := r.console.journal
	end := j.End()
	if r.Offset >= end.Offset {
		return b, nil
	}
	block, err := j.Read("", r.Offset, end.Offset)
	if err != nil { // the lines are dropped: a disk that fails must not end the socket
		l.hub.log.Warn("cannot read a console", "container", r.console.id, "err", err)
		block = journal.Block{From: end.Offset, To: end.Offset}
	}
	if block.From > r.Offset {
		l.skip(&b, r, block.From, end)
	}
	var runs []run
	for b.size < maxTake {
		record, ok := block.Next()
		if !ok {
			r.Offset = block.To
			break
		}
		if b.first.IsZero() {
			b.first = record.Line.Time
		}
		event := EventConsole
		if record.Line.Message {
			event = v1.EventMessage
		}
		if n := len(runs); n == 0 || record.Line.Message || runs[n-1].event != event {
			runs = append(runs, run{event: event})
		}
		last := &runs[len(runs)-1]
		var text []byte
		text, r.held = joined(r.held, record.Line)
		if last.text = append(last.text, text...); !record.Line.Partial && !record.Line.Message {
			last.text = append(last.text, '\n')
		}
		last.end, last.at = record.End, record.Line.At()
		if !last.partial {
			last.times = append(last.times, last.at.UTC())
			b.size += timeSize
		}
		last.partial = record.Line.Partial
		b.size += len(record.Line.Data) + 1
		r.Offset, r.Line = record.End, r.Line+1
	}
	for _, x := range runs {
		m := NewMessage(x.event, "", string(x.text), x.at)
		m.Line = j.Cursor(x.end).String()
		if len(x.times) > 1 {
			m.Times = x.times
		}
		b.list = append(b.list, m)
	}
	b.more = r.Offset < end.Offset
	if l.id == "" {
		for i := range b.list {
			b.list[i].Container = r.console.id
		}
	}
	return b, nil
}

// skip moves a reader over lines that are no longer kept, and adds a message with their number.
func (l *Listener) skip(b *batch, r *reader, to int64, end journal.Position) {
	j := r.console.journal
	from := j.Cursor(r.Offset)
	kept, err := j.Count(to, end.Offset)
	if err != nil {
		l.hub.log.Warn("cannot count the lines of a console", "container", r.console.id, "err", err)
	}
	lines := end.Line - kept - r.Line
	r.Position, r.held = journal.Position{Offset: to, Line: end.Line - kept}, nil
	if lines <= 0 { // damage
		return
	}
	l.hub.dropped.Add(float64(lines))
	m := NewMessage(v1.EventMessage, "", fmt.Sprintf("%d console lines were dropped: this client reads too slowly", lines),
		l.hub.options.Now())
	m.SinceLine, m.Line = from.String(), j.Cursor(to).String()
	b.list = append(b.list, m)
}

// joined returns the text of a record: what was held back of the partial line before, and its data. It
// holds back the beginning of a rune at the end of a partial line.
func joined(held []byte, l v1.Line) (text, rest []byte) {
	if l.Message {
		return l.Data, held
	}
	text = l.Data
	if len(held) > 0 {
		text = append(bytes.Clone(held), l.Data...)
	}
	if !l.Partial {
		return text, nil
	}
	n := len(text) - runeTail(text)
	return text[:n], bytes.Clone(text[n:])
}

// runeTail returns the number of bytes of an incomplete rune at the end of data.
func runeTail(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		c := data[len(data)-n]
		if !utf8.RuneStart(c) {
			continue
		}
		if c >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-n:]) {
			return n
		}
		return 0
	}
	return 0
}
