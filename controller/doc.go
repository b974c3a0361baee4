// Package controller runs reconcilers. A Loop takes the keys of objects that may
// have changed from its sources, queues each key once, passes it to a Reconciler,
// and retries failures with backoff.
//
// A source is level-triggered: it first lists every key and then names each key
// that may have changed. A lost, repeated or late signal does no harm. Two workers
// never reconcile the same key at the same time.
//
// The package does not know what an object is: nothing here names containers,
// Docker, Badger or HTTP.
package controller
