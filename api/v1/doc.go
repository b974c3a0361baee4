// Package v1 holds the vocabulary of berth: specs, statuses, events, the
// configuration and errors. It is plain data and pure functions on it.
//
// An Object has a spec and a status. Only package intent writes a Spec, and only the
// one controller of its kind writes a Status, so the two never conflict.
//
// A kind has a file of its name; backup.go also has restores and policies, pool.go with
// portset.go the ports. object.go is what all kinds share, clone.go their copies, spechash.go
// what requires a new container, unready.go why one does not run. config.go is the
// configuration, config_*.go its defaults, checks, units and view. error.go has every code and
// refusal, fielderrors.go errors of fields. event.go and audit.go are transitions and the audit
// log, actor.go who caused them. path.go has the path rules; file.go, inplace.go and
// snapshot.go are the vocabulary of package volume. secret.go hides secrets in logs,
// public_address.go knows public addresses, node.go is this host, console.go a line of a
// console.
//
// The package does not know how objects are stored, served or reconciled, and imports
// only the standard library.
package v1
