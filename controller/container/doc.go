// Package container drives the containers of the host toward their specs.
//
// Reconcile observes, Plan decides, take acts: one step at a time, each noted
// in the store before the next. Plan is pure and knows every rule; the rest
// only carries out. So a crash anywhere is just another place to start from.
//
// A start is noted before it is tried, together with the last start that the
// engine had seen; it has happened when the engine shows another one. Restart
// and reinstall are numbers that the status catches up with.
//
// It must not know HTTP, Docker's API or who listens.
package container
