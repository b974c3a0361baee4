package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Reconciler drives one object toward its spec.
//
// Reconcile receives the key of an object, never what happened to it. It takes the steps
// that it can, each from what is stored and observed by then, and a bounded number of them.
// It must not wait: it begins a long operation, records that, and observes the object again
// later.
type Reconciler interface {
	Reconcile(ctx context.Context, key string) (Result, error)
}

// Result determines when the key is reconciled again. The zero Result means that the
// object needs nothing more until a source names it.
type Result struct {
	RequeueAfter time.Duration // reconcile again after this time, if it is above 0

	// Waiting means that the key waits for a resource that other keys hold, such as
	// a permit, or for a job of its own. That is neither a success nor a failure: the backoff of earlier
	// failures stays. A source names the key, or RequeueAfter is set.
	Waiting bool
}

// Terminal marks an error that a retry cannot fix. The key waits for the next
// signal, at the latest for the resync.
func Terminal(err error) error { return terminalError{err} }

type terminalError struct{ error }

func (e terminalError) Unwrap() error { return e.error }

// Catch calls f. It turns a panic into an error and logs its stack, so that one bad
// object cannot end the daemon. what names the work in the log, and args are attributes of
// slog.
func Catch(log *slog.Logger, what string, f func() error, args ...any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error(what+" panicked", append(args, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
			err = fmt.Errorf("%w: %v", ErrPanic, p)
		}
	}()
	return f()
}

// ErrPanic is the error of Catch for a panic.
var ErrPanic = errors.New("panic")

// Persist calls f, and with backoff again after each panic, until ctx ends. It returns the error of a call
// that returns. A goroutine of a daemon runs in it, or in Catch: a panic in any other ends the process.
func Persist(ctx context.Context, log *slog.Logger, what string, f func(context.Context) error, args ...any) error {
	b := sourceBackOff().New()
	for {
		began := time.Now()
		err := Catch(log, what, func() error { return f(ctx) }, args...)
		if time.Since(began) > sourceBackOff().Max {
			b.Reset()
		}
		if !errors.Is(err, ErrPanic) || !Sleep(ctx, b.NextBackOff()) {
			return err
		}
	}
}
