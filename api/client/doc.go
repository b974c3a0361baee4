// Package client calls a berth daemon through its API.
//
// A Client groups the calls by resource: Containers, Volumes, Files, Ports, Tokens,
// Events and Audit. A response whose status is not 2xx is an *Error with the status, the code
// and the message of the daemon:
//
//	_, err := c.Containers().Get(ctx, "survival")
//	if errors.Is(err, v1.ErrContainerNotFound) { ... }
//
// Events.Watch and Containers.Follow deliver messages until their context ends. They
// reconnect when the connection breaks, and Watch continues after the last
// transition that it has delivered, so that each is delivered once. Stream is a
// single connection without that.
//
// Files.Download and Files.Upload stream in constant memory.
//
// No other call is repeated. All types are safe for concurrent use except Stream.
package client
