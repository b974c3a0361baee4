package backup

import (
	"time"

	v1 "berth/api/v1"
	"berth/controller/jobs"
)

// maxAttempts is how often a job begins before an interruption makes it fail.
const maxAttempts = 3

// Action is one step of a backup or a restore.
type Action int

// The actions.
const (
	Rest            Action = iota
	RecordPending          // the request was seen
	Begin                  // record that the job runs, and begin it
	RecordProgress         // of the job that runs
	RecordCompleted        // the job succeeded
	RecordFailed           // the job failed, or was interrupted too often
	SendResume             // the command that ends the rest of a container
	Await                  // something else has to change first
	RecordDeleting
	Cancel  // the job
	Collect // the result of a removal
	Remove  // begin to remove the archive
)

// Observed is what Plan knows of a backup or a restore beside the records.
type Observed struct {
	Job           Job
	Removal       Job  // of the archive of a backup
	VolumeDeleted bool // the volume of a backup is gone, or going
	VolumeBusy    bool // a container may have the volume of a restore mounted and run
}

// Plan returns the next step of a backup. It reads nothing and changes nothing.
func Plan(b v1.Backup, o Observed) Action {
	switch {
	case b.Meta.Deleted:
		return planDeletion(b, o)
	case b.Status.State == "":
		return RecordPending
	case b.Status.State.Finished():
		return planFinished(b, o)
	case o.Job.State == jobs.Running && o.VolumeDeleted:
		return Cancel
	case o.Job.State == jobs.Running:
		return RecordProgress
	case o.Job.State == jobs.Ended:
		return recordOf(o.Job, o.VolumeDeleted)
	case b.Status.ResumeDue:
		return SendResume // berth was killed between the two commands
	}
	return begin(b.Status.State, b.Status.Attempts)
}

// planDeletion plans the end of a backup: its job, its resume command, its archive, its
// record.
func planDeletion(b v1.Backup, o Observed) Action {
	switch {
	case b.Status.State != v1.JobDeleting:
		return RecordDeleting
	case o.Job.State == jobs.Running:
		return Cancel
	case o.Removal.State == jobs.Running:
		return Await
	case b.Status.ResumeDue:
		return SendResume
	case o.Removal.State == jobs.Ended:
		return Collect
	}
	return Remove
}

// planFinished plans what is left to do for a backup that has completed or failed.
func planFinished(b v1.Backup, o Observed) Action {
	switch {
	case b.Status.ResumeDue:
		return SendResume
	case !b.Status.Leftover:
		return Rest
	case o.Removal.State == jobs.Running:
		return Await
	case o.Removal.State == jobs.Ended:
		return Collect
	}
	return Remove
}

// PlanRestore returns the next step of a restore. It reads nothing and changes nothing.
func PlanRestore(r v1.Restore, o Observed) Action {
	switch {
	case r.Status.State == "":
		return RecordPending
	case r.Status.State.Finished():
		return Rest
	case o.Job.State == jobs.Running:
		return Await
	case o.Job.State == jobs.Ended:
		return recordOf(o.Job, false)
	}
	next := begin(r.Status.State, r.Status.Attempts)
	if next == Begin && o.VolumeBusy {
		return Await
	}
	return next
}

// begin plans another attempt, unless a crash interrupted too many.
func begin(state v1.JobState, attempts int) Action {
	if state == v1.JobRunning && attempts >= maxAttempts {
		return RecordFailed
	}
	return Begin
}

// recordOf plans the record of a job that has ended.
func recordOf(j Job, volumeDeleted bool) Action {
	if j.Err != nil || volumeDeleted {
		return RecordFailed
	}
	return RecordCompleted
}

// progressPeriod is the time between two records of the progress of a job.
const progressPeriod = time.Second
