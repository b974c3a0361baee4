// Package intent turns requests into desired state: admission rules that are
// pure, and one transaction of the store for each request. It is the only
// writer of every spec but those of tokens, which package auth writes.
//
// A refusal is or wraps a *v1.Error. Any other error is the store's: the outcome is
// unknown, but the request was executed completely or not at all.
//
// The package does not know HTTP, the host, or the controllers that carry out what it
// wrote.
package intent
