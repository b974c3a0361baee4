// Package container drives the containers of the host toward their specs.
//
// Reconcile observes a container, Plan picks its next step, and execute takes
// it. Each step is recorded in the store before the next one. Plan is pure and
// holds every rule; the rest of the package only executes. So a crash anywhere is
// just another place to start from.
//
// The reconciler records a start before it calls the engine, together with the
// StartedAt of the previous run. Once the engine reports another StartedAt, the
// start has happened. A request to restart or to reinstall raises a counter in the
// spec, a generation; the status records the generation that was carried out.
//
// Reconcile is in container.go; plan.go has the rules, action.go the steps. execute.go begins a
// step, and each kind of step has a file: server.go creates and starts, exit.go stops and
// records exits, install.go, config_files.go, pull.go with pull_policy.go and puller.go, slow.go
// warns of starts and installations that take long, failure.go records what failed. spec.go and
// mounts.go have what the engine is given, deadline.go until when a start or an installation may
// last. record.go stores a status with its event, condition.go sets conditions. volume.go,
// pressure.go and roots.go are about directories and disk space, restore.go waits for restores,
// outage.go for the engine, orphan.go removes what has no record; settled.go spares containers
// that need nothing. semaphore.go with concurrency.go limits expensive calls, timers.go measures
// times, engine.go has the interfaces.
//
// The package does not know HTTP, Docker's API or who listens to events.
package container
