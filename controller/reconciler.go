package controller

import (
	"context"
	"time"
)

// Reconciler drives one object toward its spec, a step at a time.
//
// Reconcile receives the key of an object, never what happened to it. It must not
// wait: it begins a long operation, records that, and observes the object again later.
type Reconciler interface {
	Reconcile(ctx context.Context, key string) (Result, error)
}

// Result determines when the key is reconciled again. The zero Result means that the
// object needs nothing more until a source names it.
type Result struct {
	Requeue      bool          // there is a next step: reconcile again at once
	RequeueAfter time.Duration // otherwise reconcile again after this time, if it is above 0

	// Waiting means that the key waits for a resource that other keys hold, such as
	// a permit. That is neither a success nor a failure: the backoff of earlier
	// failures stays. A source of Loop.Awaited names the key, or RequeueAfter is set.
	Waiting bool
}

// Source calls notify with each key that may have changed, until ctx ends. Each time
// it runs, it lists all keys first. After an error the Loop runs it again.
type Source func(ctx context.Context, notify func(key string)) error

// Terminal marks an error that a retry cannot fix. The key waits for the next
// signal, at the latest for the resync.
func Terminal(err error) error { return terminalError{err} }

type terminalError struct{ error }

func (e terminalError) Unwrap() error { return e.error }

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

// Every returns a source that names all keys of list in each period: the resync that
// makes up for lost signals. It spreads the keys over the period, so that a host with
// many keys never reconciles all of them at once.
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
			step := period / time.Duration(max(1, len(keys)))
			if len(keys) == 0 {
				keys = []string{""}
			}
			for _, k := range keys {
				tick.Reset(step)
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
				if k != "" {
					notify(k)
				}
			}
		}
		return nil
	}
}
