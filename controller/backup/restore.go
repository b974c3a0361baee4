package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/jobs"
	"berth/store"
)

// restores is the controller.Reconciler of restores.
type restores struct {
	Options
	throttle controller.Throttle
}

// busyWait is the time between two checks whether containers have left a volume.
const busyWait = time.Second

// Reconcile takes the steps of the restore with this id until one has to wait.
func (r *restores) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	for range maxSteps {
		o, restore, err := r.observe(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			r.Jobs.archives.Forget(restoreJob + id)
			return controller.Result{}, nil
		}
		if errors.Is(err, store.ErrDamaged) && o.Job.State == jobs.None {
			return controller.Result{}, errors.Join(err, r.giveUp(id))
		}
		if err != nil {
			return controller.Result{}, err
		}
		next := PlanRestore(restore, o)
		if res, err := r.take(restore, o.Job, next); err != nil || next == Rest || res != (controller.Result{}) {
			return res, err
		}
	}
	return controller.Result{}, fmt.Errorf("restore %s: no progress in %d steps", id, maxSteps)
}

// take takes one step. The zero Result means that another one may follow.
func (r *restores) take(o v1.Restore, job Job, a Action) (controller.Result, error) {
	switch a {
	case Begin:
		return r.begin(o)
	case RecordPending, RecordCompleted, RecordFailed:
		return controller.Result{}, r.recordStep(o, a, job)
	case Await:
		if job.State == jobs.Running {
			return controller.Result{Waiting: true}, nil // Jobs names it when it has ended
		}
		r.Jobs.archives.Forget(restoreJob + o.Meta.ID) // so that the others go on
		return controller.Result{Waiting: true, RequeueAfter: busyWait}, nil
	}
	return controller.Result{}, nil
}

// observe loads a restore, and observes its job and its volume.
func (r *restores) observe(ctx context.Context, id string) (o Observed, restore v1.Restore, err error) {
	tx := r.Store.Read()
	if restore, err = store.Restores.Get(tx, id); err == nil && !restore.Status.State.Finished() {
		o.VolumeBusy, err = isBusy(tx, restore.Spec.VolumeID)
	}
	o.Job = r.Jobs.archives.Get(restoreJob + id)
	if err != nil || o.VolumeBusy || o.Job.State != jobs.None || restore.Status.State == "" || restore.Status.State.Finished() {
		return o, restore, err
	}
	by, err := r.Busy(ctx, restore.Spec.VolumeID) // the engine decides: it may run one without a record
	o.VolumeBusy = by != ""
	return o, restore, err
}

// isBusy reports whether a container runs with a volume, or was recorded to begin to.
// While the volume is being restored, no other does.
func isBusy(tx *store.Tx, volume string) (bool, error) {
	holders := append(store.Containers.IDsBy(tx, volume), store.VolumeHolders(tx, volume)...)
	for _, id := range holders {
		c, err := store.Containers.Get(tx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return true, err
		}
		st := c.Status
		if st.Phase.Active() || st.InstallVolume == volume && st.StartedInstall > st.ObservedInstall {
			return true, nil
		}
	}
	return false, nil
}

// begin begins the job of a restore if there is a permit.
func (r *restores) begin(o v1.Restore) (controller.Result, error) {
	started, err := r.Jobs.archives.Start(jobs.Request[Report]{
		ID: restoreJob + o.Meta.ID, Key: o.Spec.VolumeID, Urgent: true,
		Work: func(ctx context.Context, _ func(Report)) error { return r.restore(ctx, o) },
		Record: func() error {
			return recordRestore(r.Store, o, func(s *v1.RestoreStatus, now time.Time) {
				s.State, s.StartedAt = v1.JobRunning, &now
				s.Attempts++
			})
		},
	})
	return awaited(started), err
}

// giveUp releases the volume of a restore whose record cannot be read: nobody can carry it
// out. The record goes with its backup.
func (r *restores) giveUp(id string) error {
	return r.Store.MustUpdate(func(tx *store.Tx) error { return store.AbandonRestore(tx, id) })
}

// restore is the work of a restore.
func (r *restores) restore(ctx context.Context, o v1.Restore) error {
	b, err := store.Backups.Get(r.Store.Read(), o.Spec.BackupID)
	if err != nil {
		return fmt.Errorf("%w: %w", v1.ErrBackupNotFound, err)
	}
	a := v1.ArchiveOf(b.Status)
	opt := v1.RestoreOptions{Mode: o.Spec.Mode, Paths: o.Spec.Paths}
	if err := r.Archives.Fits(o.Spec.VolumeID, a, opt); err != nil {
		return err
	}
	t, err := r.Targets(b.Spec.Target)
	if err != nil {
		return err
	}
	content, size, err := t.Open(ctx, v1.ArchiveKey(b.Meta.ID), 0)
	if err != nil {
		return fmt.Errorf("open the archive: %w", err)
	}
	defer content.Close()
	if size != a.Size {
		return v1.Errorf(v1.InvalidArchive, "The archive has %d bytes instead of %d", size, a.Size)
	}
	return r.Archives.Restore(ctx, o.Spec.VolumeID, r.throttle.Reader(ctx, content), a, opt)
}

// recordStep records the state that a step leads to.
func (r *restores) recordStep(o v1.Restore, a Action, j Job) error {
	if a == RecordPending {
		return recordRestore(r.Store, o, func(s *v1.RestoreStatus, _ time.Time) { s.State = v1.JobPending })
	}
	failed := j.Err
	if a == RecordFailed && j.State == jobs.None { // the next scan of the volume removes what its attempts left
		failed = v1.Errorf(v1.Unavailable, "The restore was interrupted %d times", o.Status.Attempts)
	}
	err := recordRestore(r.Store, o, func(s *v1.RestoreStatus, now time.Time) {
		s.State, s.FinishedAt, s.Message = v1.JobCompleted, &now, ""
		if a != RecordCompleted {
			s.State, s.Message = v1.JobFailed, failureText(failed)
		}
	})
	if err != nil {
		return err
	}
	r.Jobs.archives.Forget(restoreJob + o.Meta.ID)
	if failed != nil {
		r.Log.Error("a restore failed", "restore", o.Meta.ID, "backup", o.Spec.BackupID, "volume", o.Spec.VolumeID, "err", failed)
	}
	return nil
}

// recordRestore stores a changed status of a restore. The end of a restore releases its volume,
// and removes the oldest restores of the backup.
func recordRestore(db *store.Store, o v1.Restore, fn func(*v1.RestoreStatus, time.Time)) error {
	return db.MustUpdate(func(tx *store.Tx) error {
		finished := false
		err := store.Restores.SetStatus(tx, o.Meta.ID, func(s *v1.RestoreStatus) {
			before := s.State
			fn(s, tx.Now())
			finished = s.State != before && s.State.Finished()
		})
		if err != nil || !finished {
			return err
		}
		return errors.Join(store.EndRestore(tx, o.Meta.ID, o.Spec.VolumeID), pruneRestores(tx, o.Spec.BackupID))
	})
}

// pruneRestores removes all but the newest finished restores of a backup.
func pruneRestores(tx *store.Tx, backup string) error {
	finished := store.Restores.ListBy(tx, backup)
	finished = slices.DeleteFunc(finished, isUnfinished)
	slices.SortFunc(finished, v1.NewestFirst[v1.RestoreSpec, v1.RestoreStatus])
	for _, o := range finished[min(len(finished), v1.KeptRestores):] {
		if err := store.Restores.Purge(tx, o.Meta.ID); err != nil {
			return err
		}
	}
	return nil
}
