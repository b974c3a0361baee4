package cli

import (
	"context"
	"errors"
	"fmt"
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
