// Package backup is the controller of backups, restores and backup policies.
//
// Reading or writing a volume takes minutes: Jobs does it in goroutines of its own, one
// per volume and a configured number in all, restores first. A reconcile records that a
// job begins, begins it, and observes it again when it has ended. A job that a crash
// interrupted begins again from the start, after what it left in the target was
// removed; after maxAttempts it has failed. A backup is completed only after its target
// has the whole archive; its checksum is stored in the same commit.
//
// A restore reserves its volume from the request to its end: nothing else changes the
// volume meanwhile, and its containers are kept from running.
//
// plan.go has the rules. backup.go, restore.go and policy.go reconcile the three kinds,
// record.go stores a status with its event, failure.go has the text of a failure, unfinished.go
// lists what needs a step. jobs.go runs jobs; archive.go has the job of a backup, with the
// commands of quiesce.go before and after it, and restore.go that of a restore. space.go bounds
// the bytes of a target, throttle.go the bytes a second. loops.go has the controllers and their
// sources.
//
// The package does not know how archives are made, nor where they lie: see Archives
// and Target.
package backup
