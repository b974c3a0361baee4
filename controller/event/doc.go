// Package event limits the logs of the store.
//
// The controller removes transitions and entries of the audit log that are older than
// the configured retention or exceed the configured maximum. A reader that has not read a
// removed transition receives a gap. The package does not know who reads
// transitions or what they mean.
package event
