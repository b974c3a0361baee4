// Package intent turns requests into desired state: admission rules that are
// pure, and one transaction of the store for each request. It is the only
// writer of every spec but those of tokens, which package auth writes.
//
// A refusal is or wraps a *v1.Error. Any other error is the store's: the outcome is
// unknown, but the request was executed completely or not at all.
//
// check_*.go has what is valid in a container, a backup and a policy; what is valid in an
// object of another kind is in the file of the kind. container.go creates and deletes
// containers, verbs.go has the requests to them (start, stop, reinstall, other ports), apply.go
// creates or changes them to match a spec, and apply_changes.go lists what that changes.
// ports.go changes the pool, ports_read.go reads it, ports_random.go draws from it, claims.go
// claims ports for containers, address.go parses addresses and ports. volumes.go also finds the
// containers that use a volume. policy.go is what the operator permits, requesters.go records
// who asked for a change, refusals.go names the container that holds an object.
//
// The package does not know HTTP, the host, or the controllers that carry out what it
// wrote.
package intent
