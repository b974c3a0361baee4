// Package event limits and counts the stored transitions.
//
// The controller removes transitions that are older than the configured retention or
// exceed the configured maximum. A reader that has not read a removed transition
// receives a gap. The package does not know who reads transitions or what they mean.
package event
