package client

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// maxTail is the largest number of console lines that the daemon returns.
const maxTail = 10_000

// Follow delivers the last tail lines of a container's console (0 to 10000), and then
// its output, states, statistics and messages, until ctx ends or the container is
// deleted. It reconnects when the connection breaks and first delivers the lines
// that it missed, at most 10000, as one message with EventLogs. Lines at the moment of
// the break may be delivered twice.
//
// The last element is an error, unless the caller ends the loop. It is ctx.Err() if
// ctx ended, and a *CloseError if the container is deleted.
func (s Containers) Follow(ctx context.Context, id string, tail int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		f := &follow{containers: s, id: id, tail: tail, yield: yield}
		s.c.resume(ctx, f, func() (*Stream, error) { return s.Open(ctx, id, f.tail) })
	}
}

// follow delivers the console of a container.
type follow struct {
	containers Containers
	id         string
	tail       int       // of the next stream
	last       time.Time // of the newest console line that was delivered; zero: none
	reread     time.Time // of the newest line that opened delivered; zero: none
	yield      func(Message, error) bool
}

func (f *follow) fail(err error) { f.yield(Message{}, err) }

// opened delivers the lines that were printed while there was no stream.
func (f *follow) opened(ctx context.Context) (more bool, err error) {
	f.tail = 0
	if f.last.IsZero() {
		return true, nil
	}
	lines, err := f.containers.Logs(ctx, f.id, LogOptions{Tail: maxTail, Since: f.last})
	if err != nil {
		return true, err
	}
	var text strings.Builder
	for _, line := range lines {
		if line.Time.After(f.last) {
			text.WriteString(line.Data + "\n")
			f.last, f.reread = line.Time, line.Time
		}
	}
	if text.Len() == 0 {
		return true, nil
	}
	return f.yield(Message{Event: EventLogs, Data: text.String(), Time: f.last}, nil), nil
}

func (f *follow) deliver(m Message) (more bool) {
	switch m.Event {
	case EventConsole, EventLogs:
		if !f.reread.IsZero() && !m.Time.After(f.reread) {
			return true // opened has delivered it
		}
		f.last = m.Time
	}
	return f.yield(m, nil)
}

// consumer receives the messages of a stream that is opened again when it breaks.
type consumer interface {
	// opened is called for each new stream.
	opened(ctx context.Context) (more bool, err error)
	deliver(m Message) (more bool)
	// fail is called at most once, at the end.
	fail(err error)
}

// resume opens streams and delivers their messages until ctx ends, the consumer has
// enough or an error is permanent.
func (c *Client) resume(ctx context.Context, to consumer, open func() (*Stream, error)) {
	for {
		more, err := c.once(ctx, to, open)
		if !more {
			return
		}
		if ctx.Err() != nil {
			to.fail(ctx.Err())
			return
		}
		if c.options.Retry < 0 || isPermanent(err) {
			to.fail(err)
			return
		}
		if c.options.OnRetry != nil {
			c.options.OnRetry(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.options.Retry/2 + rand.N(c.options.Retry)): // so that clients do not all return at once
		}
	}
}

// once delivers the messages of one stream. more reports whether the consumer wants
// another one.
func (c *Client) once(ctx context.Context, to consumer, open func() (*Stream, error)) (more bool, err error) {
	stream, err := open()
	if err != nil {
		return true, err
	}
	defer func() { _ = stream.Close() }()
	if more, err := to.opened(ctx); err != nil || !more {
		return more, err
	}
	for {
		m, err := stream.Next()
		if err != nil {
			return true, err
		}
		if !to.deliver(m) {
			return false, nil
		}
	}
}

// isPermanent reports whether another attempt would fail in the same way.
func isPermanent(err error) bool {
	var closed *CloseError
	if errors.As(err, &closed) {
		return closed.Permanent()
	}
	if errors.Is(err, ErrNotBerth) {
		return true
	}
	switch status := StatusOf(err); status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return status/100 == 4
	}
}
