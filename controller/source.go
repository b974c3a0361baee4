package controller

import (
	"context"
	"time"
)

// Source calls notify with each key that may have changed, until ctx ends. After an error the Loop
// runs it again. One of a controller's sources names all keys at the start.
type Source func(ctx context.Context, notify func(key string)) error

// Once returns a source that names one key at the start. After that each Result
// determines when the key is reconciled again.
func Once(key string) Source {
	return func(ctx context.Context, notify func(string)) error {
		notify(key)
		<-ctx.Done()
		return nil
	}
}

// Every returns a source that names all keys of list in each period, the first at
// once: the resync that makes up for lost signals. It spreads the keys over the
// period, so that a host with many keys never reconciles all of them at once.
func Every(period time.Duration, list func() ([]string, error)) Source {
	return func(ctx context.Context, notify func(string)) error {
		for ctx.Err() == nil {
			keys, err := list()
			if err != nil {
				return err
			}
			step := period / time.Duration(max(1, len(keys)))
			if len(keys) == 0 {
				Sleep(ctx, step)
			}
			for _, key := range keys {
				notify(key)
				if !Sleep(ctx, step) {
					return nil
				}
			}
		}
		return nil
	}
}
