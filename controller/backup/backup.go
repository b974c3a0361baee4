package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/jobs"
	"berth/store"
)

// backups is the controller.Reconciler of backups.
type backups struct {
	Options
	throttle controller.Throttle
	space    *space
}

// maxSteps bounds the steps of one reconcile.
const maxSteps = 30

// Reconcile takes the steps of the backup with this id until one has to wait.
func (r *backups) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	for range maxSteps {
		b, o, err := r.observe(id)
		if errors.Is(err, store.ErrNotFound) {
			r.Jobs.archives.Forget(backupJob + id)
			r.Jobs.removals.Forget(id)
			return controller.Result{}, nil
		}
		if err != nil {
			return controller.Result{}, err
		}
		next := Plan(b, o)
		if res, err := r.take(ctx, b, o, next); err != nil || next == Rest || res != (controller.Result{}) {
			return res, err
		}
	}
	return controller.Result{}, fmt.Errorf("backup %s: no progress in %d steps", id, maxSteps)
}

// take takes one step. The zero Result means that another one may follow.
func (r *backups) take(ctx context.Context, b v1.Backup, o Observed, a Action) (controller.Result, error) {
	switch a {
	case Begin:
		return r.begin(b)
	case RecordProgress:
		return controller.Result{RequeueAfter: progressPeriod}, r.recordProgress(b, o.Job.Value.Progress)
	case RecordPending, RecordCompleted, RecordFailed, RecordDeleting:
		return controller.Result{}, r.recordStep(b, a, o)
	case SendResume:
		return controller.Result{}, r.resume(ctx, b)
	case Cancel:
		r.Jobs.archives.Cancel(backupJob + b.Meta.ID)
		return controller.Result{Waiting: true}, nil
	case Await:
		return controller.Result{Waiting: true}, nil
	case Remove:
		return r.remove(b)
	case Collect:
		return controller.Result{}, r.collect(b, o.Removal)
	}
	return controller.Result{}, nil
}

// observe loads a backup, and what Plan needs to know beside it.
func (r *backups) observe(id string) (b v1.Backup, o Observed, err error) {
	tx := r.Store.Read()
	if b, err = store.Backups.Get(tx, id); err == nil {
		o.VolumeDeleted, err = isDeleted(tx, b.Spec.VolumeID)
	}
	o.Job, o.Removal = r.Jobs.archives.Get(backupJob+id), r.Jobs.removals.Get(id)
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
	started, err := r.Jobs.archives.Start(jobs.Request[Report]{
		ID: backupJob + b.Meta.ID, Key: b.Spec.VolumeID, Work: r.write(b),
		Record: func() error {
			return record(r.Store, b, func(_ *store.Tx, s *v1.BackupStatus, now time.Time) error {
				s.State, s.StartedAt = v1.JobRunning, &now
				s.Attempts++
				return nil
			})
		},
	})
	if started {
		return controller.Result{RequeueAfter: progressPeriod}, nil
	}
	return awaited(started), err
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
		r.Jobs.archives.Cancel(backupJob + b.Meta.ID)
		r.Jobs.archives.Forget(backupJob + b.Meta.ID) // if it waits
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
		recorded = *s
		return err
	})
	if err != nil {
		return err
	}
	r.Jobs.archives.Forget(backupJob + b.Meta.ID)
	if !recorded.Leftover {
		r.space.release(b.Meta.ID)
	}
	r.Metrics.observe(b.Spec.Target, recorded)
	if err := o.Job.Err; err != nil {
		r.Log.Error("a backup failed", "backup", b.Meta.ID, "volume", b.Spec.VolumeID, "target", b.Spec.Target, "err", err)
	}
	return nil
}

// completed returns the change to a completed backup. The volume may have been deleted
// while its last files were read: then nobody knows what the archive lacks.
func completed(b v1.Backup, j Job) change {
	return func(tx *store.Tx, s *v1.BackupStatus, now time.Time) error {
		if gone, err := isDeleted(tx, b.Spec.VolumeID); gone || err != nil {
			return errors.Join(err, failed(b, Observed{Job: j, VolumeDeleted: true})(tx, s, now))
		}
		made := j.Value.Snapshot
		s.State, s.FinishedAt, s.Message = v1.JobCompleted, &now, ""
		s.Size, s.Checksum, s.Unpacked, s.Files = made.Size, made.Checksum, made.Bytes, made.Files
		all := v1.FirstSkipped(made.Skipped, v1.MaxSkipped, v1.MaxSkippedBytes)
		s.Skipped, s.SkippedTotal = v1.FirstSkipped(all, v1.ListedSkipped, v1.ListedSkippedBytes), made.SkippedTotal
		s.Progress = v1.Progress{Bytes: made.Bytes, Total: made.Bytes}
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
		switch {
		case o.VolumeDeleted:
			s.Message = "The volume was deleted before the backup had completed"
		case o.Job.State == jobs.None:
			s.Message = fmt.Sprintf("The backup was interrupted %d times", b.Status.Attempts)
		default:
			s.Message = failureText(o.Job.Err)
		}
		s.Leftover = o.Job.Err == nil || o.Job.Value.Leftover
		return nil
	}
}

// remove begins to remove what a target has of a backup.
func (r *backups) remove(b v1.Backup) (controller.Result, error) {
	r.Jobs.archives.Forget(backupJob + b.Meta.ID)
	started, err := r.Jobs.removals.Start(jobs.Request[Report]{
		ID: b.Meta.ID, Key: string(b.Spec.Target),
		Work: func(ctx context.Context, _ func(Report)) error {
			t, err := r.Targets(b.Spec.Target)
			if err != nil {
				return err
			}
			return t.Delete(ctx, v1.ArchiveKey(b.Meta.ID))
		},
	})
	return awaited(started), err
}

// collect acts on the result of a removal.
func (r *backups) collect(b v1.Backup, removal Job) error {
	id := b.Meta.ID
	r.Jobs.removals.Forget(id)
	if removal.Err != nil {
		return fmt.Errorf("backup %s: remove its archive: %w", id, removal.Err)
	}
	r.space.release(id)
	if b.Meta.Deleted {
		return r.Store.Update(func(tx *store.Tx) error { return store.PurgeBackup(tx, id) })
	}
	return record(r.Store, b, func(_ *store.Tx, s *v1.BackupStatus, _ time.Time) error { s.Leftover = false; return nil })
}
