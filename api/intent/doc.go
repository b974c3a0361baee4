// Package intent turns requests into desired state: admission rules, which are
// pure but for time zones and mounts, and one transaction of the store for each request. It writes
// every spec but those that rule 1 of architecture.md gives to others.
//
// A refusal is or wraps a *v1.Error. Any other error is the store's: the outcome is
// unknown, but the request was executed completely or not at all.
//
// The package does not know HTTP, the host, or the controllers that carry out what it
// wrote.
package intent
