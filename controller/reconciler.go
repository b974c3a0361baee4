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
	// a permit, or for a job of its own. That is neither a success nor a failure: the backoff of earlier
	// failures stays. A source of Loop.Awaited names the key, or RequeueAfter is set.
	Waiting bool
}

// RequeueNow returns the result of a step that has a next one.
func RequeueNow() Result { return Result{Requeue: true} }

// Terminal marks an error that a retry cannot fix. The key waits for the next
// signal, at the latest for the resync.
func Terminal(err error) error { return terminalError{err} }

type terminalError struct{ error }

func (e terminalError) Unwrap() error { return e.error }
