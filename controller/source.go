package controller

import (
	"context"
	"time"
)

// Source calls notify with each key that may have changed, until ctx ends. Each time
// it runs, it lists all keys first. After an error the Loop runs it again.
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

// List returns a source that names all keys of list once, at the start.
func List(list func() ([]string, error)) Source {
	return func(ctx context.Context, notify func(string)) error {
		keys, err := list()
		if err != nil {
			return err
		}
		for _, k := range keys {
			notify(k)
		}
		<-ctx.Done()
		return nil
	}
}

// Every returns a source that names all keys of list in each period, the first at
// once: the resync that makes up for lost signals. It spreads the keys over the
// period, so that a host with many keys never reconciles all of them at once. Keys that
// follow each other within minResyncStep are named together: each timer wakes a thread.
func Every(period time.Duration, list func() ([]string, error)) Source {
	return func(ctx context.Context, notify func(string)) error {
		tick := time.NewTimer(0)
		defer tick.Stop()
		<-tick.C
		for ctx.Err() == nil {
			keys, err := list()
			if err != nil {
				return err
			}
			step := max(1, period/time.Duration(max(1, len(keys))))
			together := max(1, int((minResyncStep+step-1)/step))
			for first := true; first || len(keys) > 0; first = false {
				now := min(together, len(keys))
				for _, k := range keys[:now] {
					notify(k)
				}
				keys = keys[now:]
				tick.Reset(step * time.Duration(max(1, now)))
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
			}
		}
		return nil
	}
}

// minResyncStep is the time between two groups of keys of Every, at least.
const minResyncStep = 50 * time.Millisecond
