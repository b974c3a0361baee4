// Package v1 holds the vocabulary of berth: specs, statuses, events, the
// configuration and errors. It is plain data and pure functions on it.
//
// An Object has a spec and a status. Only package intent writes a Spec (package auth those of
// tokens, and the controller of backup policies creates backups), and only the one controller
// of its kind writes a Status, so the two never conflict.
//
// The package does not know how objects are stored, served or reconciled, and imports
// only the standard library.
package v1
