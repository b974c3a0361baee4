package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// Options are what the controllers of this package need.
type Options struct {
	Store    *store.Store
	Targets  func(v1.Target) (Target, error) // v1.Error if it is not configured
	Archives Archives
	Console  Console
	Busy     func(ctx context.Context, volume string) (container string, err error) // a container of the engine that runs with a volume; "": none
	Free     func(v1.Target) error                                                  // why nothing may be written to a target: its disk is full
	Limits   func() v1.BackupsConfig                                                // Bandwidth, and how many and how large backups may be
	Jobs     *Jobs
	Metrics  *Metrics
	Log      *slog.Logger
}

// backups is the controller.Reconciler of backups.
type backups struct {
	Options
	throttle throttle
	space    *space
}

// Reconcile takes one step for the backup with this id.
func (r *backups) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	b, o, err := r.observe(id)
	if errors.Is(err, store.ErrNotFound) {
		r.Jobs.forget(id)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	switch a := Plan(b, o); a {
	case Begin:
		return r.begin(b)
	case RecordProgress:
		return controller.Result{RequeueAfter: progressPeriod}, r.recordProgress(b, o.Job.Progress)
	case RecordPending, RecordCompleted, RecordFailed, RecordDeleting:
		return controller.RequeueNow(), r.recordStep(b, a, o)
	case SendResume:
		return controller.RequeueNow(), r.resume(ctx, b)
	case Cancel:
		r.Jobs.stop(id)
	case Remove, Collect:
		return r.remove(b, a, o.Job)
	}
	return controller.Result{}, nil
}

// observe loads a backup, and what Plan needs to know beside it.
func (r *backups) observe(id string) (b v1.Backup, o Observed, err error) {
	err = r.Store.View(func(tx *store.Tx) (err error) {
		if b, err = store.Backups.Get(tx, id); err != nil {
			return err
		}
		o.VolumeDeleted, err = isDeleted(tx, b.Spec.VolumeID)
		return err
	})
	o.Job = r.Jobs.observe(id)
	return b, o, err
}

// isDeleted reports whether a volume is deleted, or about to be.
func isDeleted(tx *store.Tx, volume string) (bool, error) {
	v, err := store.Volumes.Get(tx, volume)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return v.Meta.Deleted, err
}

// begin begins the job of a backup if there is a permit.
func (r *backups) begin(b v1.Backup) (controller.Result, error) {
	p := place{kind: BackingUp, volume: b.Spec.VolumeID, since: b.Meta.CreatedAt}
	record := func() error {
		return record(r.Store, b, func(_ *store.Tx, s *v1.BackupStatus, now time.Time) error {
			s.State, s.StartedAt = v1.JobRunning, &now
			s.Attempts++
			return nil
		})
	}
	begun, err := r.Jobs.begin(b.Meta.ID, p, record, r.write(b))
	return controller.Result{Requeue: begun && err == nil, Waiting: !begun && err == nil}, err
}

func (r *backups) recordProgress(b v1.Backup, p v1.Progress) error {
	return r.Store.Update(func(tx *store.Tx) error {
		return store.Backups.SetStatus(tx, b.Meta.ID, func(s *v1.BackupStatus) {
			if s.State == v1.JobRunning && p.Bytes > 0 {
				s.Progress = p
			}
		})
	})
}

// recordStep records the state that a step leads to.
func (r *backups) recordStep(b v1.Backup, a Action, o Observed) error {
	end := failed(b, o)
	switch a {
	case RecordPending:
		return record(r.Store, b, func(_ *store.Tx, s *v1.BackupStatus, _ time.Time) error { s.State = v1.JobPending; return nil })
	case RecordDeleting:
		err := record(r.Store, b, func(_ *store.Tx, s *v1.BackupStatus, _ time.Time) error { s.State = v1.JobDeleting; return nil })
		r.Jobs.stop(b.Meta.ID)
		return err
	case RecordCompleted:
		end = completed(b, o.Job)
	}
	return r.recordEnd(b, o, end)
}

// recordEnd records the end of a backup, counts it, and releases its space unless something
// of its archive is left. The recorded status decides, not the job: the backup may have failed
// although its job completed.
func (r *backups) recordEnd(b v1.Backup, o Observed, end change) error {
	var recorded v1.BackupStatus
	err := record(r.Store, b, func(tx *store.Tx, s *v1.BackupStatus, now time.Time) error {
		err := end(tx, s, now)
		recorded = s.Clone()
		return err
	})
	if err != nil {
		return err
	}
	r.Jobs.forget(b.Meta.ID)
	if !recorded.Leftover {
		r.space.release(b.Meta.ID)
	}
	r.Metrics.observe(b.Spec.Target, recorded)
	r.logFailure(b, o)
	return nil
}

func (r *backups) logFailure(b v1.Backup, o Observed) {
	if err := o.Job.Outcome.Err; err != nil {
		r.Log.Error("a backup failed", "backup", b.Meta.ID, "volume", b.Spec.VolumeID, "target", b.Spec.Target, "err", err)
	}
}

// completed returns the change to a completed backup. The volume may have been deleted
// while its last files were read: then nobody knows what the archive lacks.
func completed(b v1.Backup, j Job) change {
	return func(tx *store.Tx, s *v1.BackupStatus, now time.Time) error {
		if gone, err := isDeleted(tx, b.Spec.VolumeID); gone || err != nil {
			return errors.Join(err, failed(b, Observed{Job: j, VolumeDeleted: true})(tx, s, now))
		}
		o := j.Outcome
		s.State, s.FinishedAt, s.Message = v1.JobCompleted, &now, ""
		s.Size, s.Checksum, s.Unpacked, s.Files = o.Snapshot.Size, o.Snapshot.Checksum, o.Snapshot.Bytes, o.Snapshot.Files
		all := v1.FirstSkipped(o.Snapshot.Skipped, v1.MaxSkipped, v1.MaxSkippedBytes)
		s.Skipped, s.SkippedTotal = v1.FirstSkipped(all, v1.ListedSkipped, v1.ListedSkippedBytes), o.Snapshot.SkippedTotal
		done := max(j.Progress.Bytes, o.Snapshot.Bytes)
		s.Progress = v1.Progress{Bytes: done, Total: done}
		if len(all) > len(s.Skipped) {
			return store.SetSkipped(tx, b.Meta.ID, all)
		}
		return nil
	}
}

// failed returns the change to a failed backup. An archive that the job has completed,
// or that could not be removed, is removed later.
func failed(b v1.Backup, o Observed) change {
	return func(_ *store.Tx, s *v1.BackupStatus, now time.Time) error {
		s.State, s.FinishedAt = v1.JobFailed, &now
		err := o.Job.Outcome.Err
		switch {
		case o.VolumeDeleted:
			s.Message = "The volume was deleted before the backup had completed"
		case o.Job.State == NoJob:
			s.Message = fmt.Sprintf("The backup was interrupted %d times", b.Status.Attempts)
		default:
			s.Message = failureText(err)
		}
		s.Leftover = err == nil || o.Job.Outcome.Leftover
		return nil
	}
}

// remove begins to remove what a target has of a backup, or acts on the result.
func (r *backups) remove(b v1.Backup, a Action, j Job) (controller.Result, error) {
	id := b.Meta.ID
	r.Jobs.forget(id)
	if a == Collect && j.Outcome.Err != nil {
		return controller.Result{}, fmt.Errorf("backup %s: remove its archive: %w", id, j.Outcome.Err)
	}
	if a == Collect {
		r.space.release(id)
	}
	if a == Collect && b.Meta.Deleted {
		return controller.Result{}, r.purge(id)
	}
	if a == Collect {
		return controller.RequeueNow(), record(r.Store, b, func(_ *store.Tx, s *v1.BackupStatus, _ time.Time) error { s.Leftover = false; return nil })
	}
	// Beginning it is no success: the backoff of earlier failures stays.
	_, err := r.Jobs.begin(id, place{kind: Removing, target: b.Spec.Target, since: b.Meta.CreatedAt}, func() error { return nil }, r.erase(b))
	return controller.Result{Waiting: err == nil}, err
}

// purge removes the records of a backup and its restores.
func (r *backups) purge(id string) error {
	return r.Store.Update(func(tx *store.Tx) error {
		for _, restore := range store.Restores.IDsBy(tx, id) {
			if err := store.Restores.Purge(tx, restore); err != nil {
				return err
			}
		}
		return store.Backups.Purge(tx, id)
	})
}
