// Package importer takes over a host that runs wings: it moves each server of the panel from wings to berth, and
// back. The folder of a server is renamed into a volume of berth, so that nothing is copied.
//
// A label of the volume, and the folders themselves, are all that an import remembers: it may be killed at any step,
// and the next one continues (move.go). What it will do is found without a change (plan.go).
//
// It calls Docker for the containers of wings alone (engine.go). Everything else is done by berth.
package importer
