// Package controller runs reconcilers. A Loop takes the keys of objects that may
// have changed from its sources, queues each key once, passes it to a Reconciler,
// and retries failures with backoff.
//
// A source is level-triggered: it first lists every key and then names each key
// that may have changed. A lost, repeated or late signal does no harm. Two workers
// never reconcile the same key at the same time.
//
// loop.go has the Loop, reconciler.go what it calls, source.go the sources. lanes.go orders the
// queue, limiter.go has the backoff, catch.go turns panics into errors; metrics.go counts
// reconciles, queuemetrics.go the queue.
//
// The package does not know what an object is: nothing here names containers,
// Docker, Badger or HTTP.
package controller
