// Package container drives the containers of the host toward their specs.
//
// Reconcile observes a container, Plan picks its next step, and the step is taken, until one
// waits. What a step is about to begin is recorded before it does. Plan is pure and holds every
// rule; the rest of the package only executes. So a crash anywhere is just another place to
// start from.
//
// The reconciler records a start before it calls the engine, together with the
// StartedAt of the previous run. Once the engine reports another StartedAt, the
// start has happened. A request to restart or to reinstall raises a counter in the
// spec, a generation; the status records the generation that was carried out.
//
// A step sets facts. What follows from them, such as most conditions, is derived in one
// function (derive) whenever a status is written, which is in one place (write).
//
// The package does not know HTTP, Docker's API or who listens to events.
package container
