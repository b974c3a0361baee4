// Package backup is the controller of backups, restores and backup policies.
//
// Reading or writing a volume takes minutes: a job does it, one of a volume at once and a
// configured number in all, restores first. A reconcile records that a job begins, begins
// it, and observes it again when it has ended. A job that a crash
// interrupted begins again from the start, after what it left in the target was
// removed; after maxAttempts it has failed. A backup is completed only after its target
// has the whole archive; its checksum is stored in the same commit.
//
// A restore reserves its volume from the request to its end: nothing else changes the
// volume meanwhile, and its containers are kept from running.
//
// The package does not know how archives are made, nor where they lie: see Archives
// and Target.
package backup
