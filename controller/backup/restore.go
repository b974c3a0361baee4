package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// restores is the controller.Reconciler of restores.
type restores struct {
	Options
	throttle throttle
}

// busyWait is the time between two checks whether containers have left a volume.
const busyWait = time.Second

// Reconcile takes one step for the restore with this id.
func (r *restores) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	o, restore, err := r.observe(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		r.Jobs.forget(id)
		return controller.Result{}, nil
	}
	if errors.Is(err, store.ErrDamaged) && o.Job.State == NoJob {
		return controller.Result{}, errors.Join(err, r.giveUp(id))
	}
	if err != nil {
		return controller.Result{}, err
	}
	switch a := PlanRestore(restore, o); a {
	case Begin:
		return r.begin(restore)
	case Sweep:
		return r.sweep(restore)
	case RecordPending, RecordCompleted, RecordFailed:
		return controller.RequeueNow(), r.recordStep(restore, a, o.Job)
	case Await:
		if o.Job.State == JobRuns {
			return controller.Result{}, nil // Jobs names it when it has ended
		}
		return controller.Result{Waiting: true, RequeueAfter: busyWait}, nil
	}
	return controller.Result{}, nil
}

// observe loads a restore, and observes its job and its volume.
func (r *restores) observe(ctx context.Context, id string) (o Observed, restore v1.Restore, err error) {
	err = r.Store.View(func(tx *store.Tx) (err error) {
		if restore, err = store.Restores.Get(tx, id); err != nil || restore.Status.State.Finished() {
			return err
		}
		o.VolumeBusy, err = isBusy(tx, restore.Spec.VolumeID)
		return err
	})
	o.Job = r.Jobs.observe(id)
	if err != nil || o.VolumeBusy || o.Job.State != NoJob || restore.Status.State == "" || restore.Status.State.Finished() {
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
	record := func() error {
		return recordRestore(r.Store, o, func(s *v1.RestoreStatus, now time.Time) {
			s.State, s.StartedAt = v1.JobRunning, &now
			s.Attempts++
		})
	}
	begun, err := r.Jobs.begin(o.Meta.ID, placeOf(o), record, r.extract(o))
	return controller.Result{Waiting: !begun && err == nil}, err
}

// giveUp releases the volume of a restore whose record cannot be read: nobody can carry it
// out. The record goes with its backup.
func (r *restores) giveUp(id string) error {
	return r.Store.MustUpdate(func(tx *store.Tx) error { return store.AbandonRestore(tx, id) })
}

func placeOf(o v1.Restore) place {
	return place{kind: Restoring, volume: o.Spec.VolumeID, since: o.Meta.CreatedAt}
}

// sweep begins the job that ends a restore which was interrupted too often.
func (r *restores) sweep(o v1.Restore) (controller.Result, error) {
	w := func(ctx context.Context, _ func(bytes, total int64)) Outcome {
		err := r.Archives.Sweep(ctx, o.Spec.VolumeID)
		return Outcome{Err: errors.Join(v1.Errorf(v1.Unavailable, "The restore was interrupted %d times", o.Status.Attempts), err)}
	}
	begun, err := r.Jobs.begin(o.Meta.ID, placeOf(o), func() error { return nil }, w)
	return controller.Result{Waiting: !begun && err == nil}, err
}

// extract returns the job of a restore.
func (r *restores) extract(o v1.Restore) work {
	return func(ctx context.Context, report func(bytes, total int64)) Outcome {
		return Outcome{Err: r.restore(ctx, o, report)}
	}
}

func (r *restores) restore(ctx context.Context, o v1.Restore, report func(bytes, total int64)) error {
	var b v1.Backup
	err := r.Store.View(func(tx *store.Tx) (err error) {
		b, err = store.Backups.Get(tx, o.Spec.BackupID)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", v1.ErrBackupNotFound, err)
	}
	a := v1.ArchiveOf(b.Status)
	if err := r.Archives.Fits(o.Spec.VolumeID, a, o.Spec.Mode); err != nil {
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
	return r.Archives.Restore(ctx, o.Spec.VolumeID, r.throttle.reader(ctx, content), a, v1.RestoreOptions{Mode: o.Spec.Mode, Progress: report})
}

// recordStep records the state that a step leads to.
func (r *restores) recordStep(o v1.Restore, a Action, j Job) error {
	if a == RecordPending {
		return recordRestore(r.Store, o, func(s *v1.RestoreStatus, _ time.Time) { s.State = v1.JobPending })
	}
	err := recordRestore(r.Store, o, func(s *v1.RestoreStatus, now time.Time) {
		s.State, s.FinishedAt, s.Message = v1.JobCompleted, &now, ""
		if a != RecordCompleted {
			s.State, s.Message = v1.JobFailed, failureText(j.Outcome.Err)
		}
	})
	if err != nil {
		return err
	}
	r.Jobs.forget(o.Meta.ID)
	if err := j.Outcome.Err; err != nil {
		r.Log.Error("a restore failed", "restore", o.Meta.ID, "backup", o.Spec.BackupID, "volume", o.Spec.VolumeID, "err", err)
	}
	return nil
}

// recordRestore stores a changed status of a restore. A change of the state emits an
// event. The end of a restore releases its volume, and removes the oldest restores of
// the backup.
func recordRestore(db *store.Store, o v1.Restore, fn func(*v1.RestoreStatus, time.Time)) error {
	return db.MustUpdate(func(tx *store.Tx) error {
		finished := false
		err := store.Restores.SetStatus(tx, o.Meta.ID, func(s *v1.RestoreStatus) {
			before := s.State
			if fn(s, tx.Now()); s.State == before {
				return
			}
			finished = s.State.Finished()
			s.Seq = store.Emit(tx, v1.Event{Event: v1.EventRestore, Data: string(s.State), Backup: o.Spec.BackupID, Restore: o.Meta.ID,
				Volume: o.Spec.VolumeID, Actor: o.Spec.RequestedBy}).Seq
		})
		if err != nil || !finished {
			return err
		}
		return errors.Join(store.EndRestore(tx, o.Meta.ID, o.Spec.VolumeID), pruneRestores(tx, o.Spec.BackupID))
	})
}

// pruneRestores removes all but the newest finished restores of a backup.
func pruneRestores(tx *store.Tx, backup string) error {
	finished, err := store.ListBy(tx, store.Restores, backup)
	if err != nil {
		return err
	}
	finished = slices.DeleteFunc(finished, isUnfinished)
	slices.SortFunc(finished, func(a, b v1.Restore) int { return b.Meta.CreatedAt.Compare(a.Meta.CreatedAt) })
	for _, o := range finished[min(len(finished), v1.KeptRestores):] {
		if err := store.Restores.Purge(tx, o.Meta.ID); err != nil {
			return err
		}
	}
	return nil
}
