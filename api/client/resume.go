package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// consumer receives the messages of a stream that is opened again when it breaks.
type consumer interface {
	deliver(m Message) (more bool)
	// fail is called at most once, at the end.
	fail(err error)
}

// resume opens streams and delivers their messages until ctx ends, the consumer has
// enough or an error is permanent.
func (c *Client) resume(ctx context.Context, to consumer, open func() (*Stream, error)) {
	for {
		more, err := once(to, open)
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
func once(to consumer, open func() (*Stream, error)) (more bool, err error) {
	stream, err := open()
	if err != nil {
		return true, err
	}
	defer func() { _ = stream.Close() }()
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
