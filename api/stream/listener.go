package stream

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Listener is one client of the hub. Next is for one goroutine; the other
// methods are for any.
type Listener struct {
	hub *Hub
	id  string // of the container; empty: node-wide

	mu      sync.Mutex // held for a few words of memory only
	cursors []*cursor
	ready   []*cursor // a queue: those with lines to read
	events  []*queued // state events, oldest first
	after   uint64    // seq of the last event that the client has
	stats   map[string]*queued
	err     error // ended it
	signal  chan struct{}

	// Next's own.
	batch batch
	all   []Message
}

// queued is a message that several listeners share.
type queued struct {
	at       time.Time
	msg      Message
	nodeWide Message // with its container
}

// After leaves out the state events up to a sequence number: the client has them.
// It is called before Next.
func (l *Listener) After(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after = max(l.after, seq)
	l.events = slices.DeleteFunc(l.events, func(q *queued) bool { return q.msg.Seq <= l.after })
}

// Next waits until there is a message and returns all that are waiting, up to some
// 32 KiB (see the package comment). The messages of the call before are no longer
// valid. Its error is ctx's, ErrSlow, ErrGone or ErrClosed; the last two come after
// all messages.
func (l *Listener) Next(ctx context.Context) ([]Message, error) {
	for {
		if out, err := l.collect(); len(out) > 0 || err != nil {
			return out, err
		}
		select {
		case <-l.signal:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close ends the listener: Next returns ErrClosed.
func (l *Listener) Close() {
	remove(l.hub, l)
	l.end(ErrClosed)
}

// collect returns the messages that are waiting. State events come before newer lines.
func (l *Listener) collect() ([]Message, error) {
	events, stats, err := l.dequeue()
	if err == ErrSlow {
		return nil, err
	}
	l.batch.reset()
	for len(l.batch.buf) < maxTake {
		c := l.nextReady()
		if c == nil {
			break
		}
		c.read(&l.batch)
	}
	l.batch.release()
	l.all = l.all[:0]
	older := 0
	for older < len(events) && !events[older].at.After(l.batch.first) {
		older++
	}
	l.add(events[:older])
	l.all = append(l.all, l.batch.out...)
	l.add(events[older:])
	l.add(stats)
	if len(l.all) > 0 {
		return l.all, nil
	}
	return nil, err
}

func (l *Listener) add(list []*queued) {
	for _, q := range list {
		if l.id == "" {
			l.all = append(l.all, q.nodeWide)
		} else {
			l.all = append(l.all, q.msg)
		}
	}
}

// dequeue returns the queued events and samples.
func (l *Listener) dequeue() (events, stats []*queued, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, l.events = l.events, nil
	for id, q := range l.stats {
		stats = append(stats, q)
		delete(l.stats, id)
	}
	return events, stats, l.err
}

// nextReady returns the next cursor with lines to read, or nil.
func (l *Listener) nextReady() *cursor {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) == 0 {
		return nil
	}
	c := l.ready[0]
	l.ready[0] = nil
	l.ready = l.ready[1:]
	c.ready.Store(false)
	return c
}

// enqueue adds a cursor that has lines to read.
func (l *Listener) enqueue(c *cursor) {
	l.mu.Lock()
	if l.err == nil {
		l.ready = append(l.ready, c)
	}
	l.mu.Unlock()
	l.wake()
}

func (l *Listener) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

func (l *Listener) putEvent(q *queued) {
	l.mu.Lock()
	switch {
	case l.err != nil, q.msg.Seq != 0 && q.msg.Seq <= l.after:
		l.mu.Unlock()
		return
	case len(l.events) >= maxEvents:
		l.err, l.events = ErrSlow, nil
	default:
		l.events = append(l.events, q)
	}
	l.mu.Unlock()
	l.wake()
}

func (l *Listener) putStats(id string, q *queued) {
	l.mu.Lock()
	if l.err == nil {
		l.stats[id] = q
	}
	l.mu.Unlock()
	l.wake()
}

// end makes Next return err after the messages that are waiting.
func (l *Listener) end(err error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	l.wake()
}

// rewind moves the listener of a container back to where its client has read. It is
// called before Next. See Hub.ListenFrom.
func (l *Listener) rewind(ctx context.Context, since LineCursor) (missing string, err error) {
	l.mu.Lock()
	cursors := slices.Clone(l.cursors)
	l.mu.Unlock()
	done, err := readDisk(ctx, l.hub, cursors[0].log.readers)
	if err != nil {
		return "", err
	}
	defer done()
	var starts []start
	for _, c := range cursors {
		s, err := c.log.start(since.of(c.log.role))
		if err != nil {
			return "", err
		}
		if err := c.rewind(s); err != nil {
			return "", err
		}
		starts = append(starts, s)
	}
	return missingText(starts...), nil
}

// Line returns how far the client of a container's listener has read after the last
// call of Next. It is for the goroutine of Next.
func (l *Listener) Line() LineCursor {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == "" || len(l.cursors) == 0 {
		return LineCursor{}
	}
	return l.cursors[0].line()
}

func (l *Listener) join(c ...*cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cursors = append(l.cursors, c...)
}

func (l *Listener) leave() []*cursor {
	l.mu.Lock()
	defer l.mu.Unlock()
	cursors := l.cursors
	l.cursors = nil
	return cursors
}

func (l *Listener) drop(c *cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cursors = slices.DeleteFunc(l.cursors, func(other *cursor) bool { return other == c })
}
