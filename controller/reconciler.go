package controller

import (
	"context"
	"time"
)

// Reconciler drives one object toward its spec, a step at a time.
//
// It is told only which object to look at, never what happened to it. It must
// not wait: what takes long is begun, noted and looked at again.
type Reconciler interface {
	Reconcile(ctx context.Context, key string) (Result, error)
}

// Result says when to look again. The zero Result means that the object is
// settled until a source names it.
type Result struct {
	Requeue      bool          // there is a next step: look again at once
	RequeueAfter time.Duration // else look again after this time, if above 0

	// Waiting reports that the key waits for something that others hold, such as
	// a permit: that is neither a success nor a failure, and the backoff of
	// earlier failures stays. A source of Loop.Awaited names the key, or After is set.
	Waiting bool
}

// Source tells which keys may have changed, until ctx ends. It lists all keys
// first, each time it is run. An error makes the Loop run it again.
type Source func(ctx context.Context, notify func(key string)) error

// Terminal marks an error that a retry cannot help. The key waits for the next
// signal, the resync at the latest.
func Terminal(err error) error { return terminalError{err} }

type terminalError struct{ error }

func (e terminalError) Unwrap() error { return e.error }

// Once is a source that names one key at the start. From then on each Result
// says when to look again.
func Once(key string) Source {
	return func(ctx context.Context, notify func(string)) error {
		notify(key)
		<-ctx.Done()
		return nil
	}
}

// List is a source that names all keys of list once, at the start.
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

// Every is a source that names all keys of list again and again: the resync
// that makes up for every signal that was lost. They are spread over the period,
// so that a host with many keys is never busy with all of them at once.
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
