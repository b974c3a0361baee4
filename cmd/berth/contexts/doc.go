// Package contexts stores the daemons that a user's command line knows: their names,
// addresses, tokens and certificates, and which of them is the current one.
//
// They are in one JSON file of the user, of mode 0600. Every change is atomic and
// durable, and concurrent changes happen one after the other. A file that other users
// can read is refused.
package contexts
