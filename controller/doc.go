// Package controller runs reconcilers: it takes the keys of objects that may
// have changed from sources, queues each once, hands it to a Reconciler, and
// retries with backoff.
//
// A source is level-triggered: it lists every key first and says "look again"
// afterwards, so a signal that is missed, repeated or late does no harm. One
// key is never worked on by two workers at once.
//
// It must not know what an object is: nothing here names containers, Docker,
// Badger or HTTP.
package controller
