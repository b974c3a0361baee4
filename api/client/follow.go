package client

import (
	"context"
	"iter"
)

// Follow delivers earlier lines of a container's console, as options select them, and
// then its output, states, statistics and messages, until ctx ends or the container is
// deleted. It reconnects when the connection breaks, and continues behind the last
// line that it has delivered, so that each is delivered once. A message with SinceLine
// means that lines are missing.
//
// The last element is an error, unless the caller ends the loop. It is ctx.Err() if
// ctx ended, and a *CloseError if the container is deleted.
func (s Containers) Follow(ctx context.Context, id string, options OpenOptions) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		f := &follow{from: options, yield: yield}
		s.c.resume(ctx, f, func() (*Stream, error) { return s.Open(ctx, id, f.from) })
	}
}

// follow delivers the console of a container.
type follow struct {
	from  OpenOptions // of the next stream
	yield func(Message, error) bool
}

func (f *follow) fail(err error) { f.yield(Message{}, err) }

func (f *follow) deliver(m Message) (more bool) {
	if m.Line != "" {
		f.from.SinceLine = m.Line
	}
	return f.yield(m, nil)
}
