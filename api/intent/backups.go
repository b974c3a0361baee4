package intent

import (
	"errors"
	"reflect"
	"slices"

	v1 "berth/api/v1"
	"berth/store"
)

// FindBackup returns a backup, even one that is being deleted, or v1.ErrBackupNotFound.
func FindBackup(tx *store.Tx, id string) (v1.Backup, error) {
	if !fullUUID.MatchString(id) {
		return v1.Backup{}, v1.ErrBackupNotFound
	}
	o, err := store.Backups.Get(tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return o, v1.ErrBackupNotFound
	}
	return o, err
}

// RestoresOf returns the restores of a backup, the newest first.
func RestoresOf(tx *store.Tx, backup string) []v1.Restore {
	list := store.Restores.ListBy(tx, backup)
	slices.SortFunc(list, v1.NewestFirst[v1.RestoreSpec, v1.RestoreStatus])
	return list
}

// CreateBackup requests a backup, whose spec CheckBackup has accepted. Its refusals are
// v1.ErrVolumeNotFound, v1.ErrContainerNotFound, v1.FieldErrors for a quiesce.container that
// does not use the volume, and those of limits.Admit. If there is a backup with the id, nothing changes: that is
// no error if it was requested with the same spec, and v1.ErrBackupExists otherwise.
func CreateBackup(s store.Writer, id string, spec v1.BackupSpec, limits v1.BackupsConfig) error {
	return s.Update(func(tx *store.Tx) error {
		if _, err := getVolume(tx, spec.VolumeID); err != nil {
			return err
		}
		if old, err := FindBackup(tx, id); !errors.Is(err, v1.ErrBackupNotFound) {
			if err == nil && !isRetry(old, spec) {
				err = v1.ErrBackupExists
			}
			return err
		}
		if expected(tx, "")[id] {
			return v1.ErrBackupExists
		}
		if err := checkQuiesced(tx, spec.Quiesce, spec.VolumeID); err != nil {
			return err
		}
		if err := limits.Admit(spec.Target, store.BackupUse(tx, spec.VolumeID, spec.Target, int64(limits.MaxVolumeSize))); err != nil {
			return err
		}
		spec.RequestedBy = tx.Actor()
		return store.Backups.Create(tx, id, spec)
	})
}

// isRetry reports whether a request is the one that made a backup, again.
func isRetry(b v1.Backup, spec v1.BackupSpec) bool {
	return !b.Meta.Deleted && b.Spec.VolumeID == spec.VolumeID && b.Spec.Policy == spec.Policy && b.Spec.Schedule == spec.Schedule &&
		reflect.DeepEqual(b.Spec.BackupRequest, spec.BackupRequest)
}

// checkQuiesced returns the refusal of a container that cannot be quiesced for a backup
// of a volume.
func checkQuiesced(tx *store.Tx, q *v1.Quiesce, volume string) error {
	if q == nil {
		return nil
	}
	o, err := FindContainer(tx, q.Container)
	if err != nil {
		return err
	}
	var f v1.FieldErrors
	if o.Spec.VolumeID != volume {
		f.Add("quiesce.container", "must be a container that uses the volume")
	}
	return f.Err()
}

// DeleteBackup requests the deletion of a backup. A pending or running one is cancelled.
// A repeated call changes nothing. Its refusals are v1.ErrBackupNotFound, v1.ErrTransferring, and the code
// BackupInUse while a restore of it has not finished.
func DeleteBackup(s store.Writer, id string) error {
	return s.MustUpdate(func(tx *store.Tx) error { return deleteBackup(tx, id) })
}

func deleteBackup(tx *store.Tx, id string) error {
	o, err := FindBackup(tx, id)
	if err != nil || o.Meta.Deleted {
		return err
	}
	if v1.IsDeparture(store.Restoring(tx, o.Spec.VolumeID)) { // it may belong to the destination
		return v1.ErrTransferring
	}
	for _, r := range RestoresOf(tx, id) {
		if !r.Status.State.Finished() {
			return v1.Errorf(v1.BackupInUse, "Backup is in use by restore %s", r.Meta.ID)
		}
	}
	err = store.Backups.SetSpec(tx, id, func(spec *v1.BackupSpec) error {
		spec.DeletedBy = tx.Actor()
		return nil
	})
	return errors.Join(err, store.Backups.Delete(tx, id))
}
