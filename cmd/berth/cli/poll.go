package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// poll gets the object with an id again and again until done returns true. It goes on
// while the daemon restarts. After w's timeout its error has the exit code of one.
func poll[T any](ctx context.Context, w *waiting, id string, get func(context.Context) (T, error), done func(T) bool) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	for {
		object, err := get(ctx)
		if err == nil && done(object) {
			return object, nil
		}
		if err != nil && ctx.Err() == nil && !transient(err) {
			return object, fmt.Errorf("%s: %w", id, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return object, withCode(exitTimeout, fmt.Errorf("%s has not ended within %s; it goes on", id, w.timeout))
			}
			return object, ctx.Err()
		}
	}
}

// waitInterval is the time between two requests for the state of a container.
const waitInterval = 200 * time.Millisecond

// transient reports whether a request failed because the daemon does not answer now, as
// while it starts. A wrong name or certificate is not that.
func transient(err error) bool {
	var op *net.OpError
	var name *net.DNSError
	switch {
	case codeOf(err) == exitUnavailable, codeOf(err) == exitTimeout, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case errors.As(err, &name) || !errors.As(err, &op):
		return false
	}
	return op.Op == "dial" || op.Op == "read" || op.Op == "write"
}
