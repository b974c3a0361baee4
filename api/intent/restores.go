package intent

import (
	"errors"
	"slices"

	v1 "berth/api/v1"
	"berth/store"
)

// RestoreBackup requests a restore, which CheckRestore has accepted. Its
// refusals are v1.ErrBackupNotFound, v1.ErrVolumeNotFound,
// v1.ErrNotCompleted, v1.ErrVolumeRestoring, v1.ErrTransferring, v1.ErrSizeLimit, and the code VolumeInUse
// unless spec.Stop is true.
func RestoreBackup(s store.Writer, id string, spec v1.RestoreSpec) error {
	return s.Update(func(tx *store.Tx) error {
		backup, err := FindBackup(tx, spec.BackupID)
		if err != nil {
			return err
		}
		volume, err := getVolume(tx, spec.VolumeID)
		if err != nil {
			return err
		}
		if v1.BackupStateOf(backup) != v1.JobCompleted {
			return v1.ErrNotCompleted
		}
		if v1.IsDeparture(store.Restoring(tx, backup.Spec.VolumeID)) { // it may belong to the destination
			return v1.ErrTransferring
		}
		if err := checkRestorable(tx, backup, volume, spec); err != nil {
			return err
		}
		spec.RequestedBy = tx.Actor()
		return store.BeginRestore(tx, id, spec)
	})
}

// checkRestorable returns why a volume cannot be restored now, or nil.
func checkRestorable(tx *store.Tx, backup v1.Backup, volume v1.Volume, spec v1.RestoreSpec) error {
	id := volume.Meta.ID
	if err := v1.ReservedBy(store.Restoring(tx, id)); err != nil {
		return err
	}
	by, err := inUseBy(tx, id)
	switch {
	case err != nil:
		return err
	case by != "" && !spec.Stop:
		return errVolumeInUse(by)
	}
	limit := store.LimitOf(tx, volume)
	if limit == 0 || len(spec.Paths) > 0 { // how large these are is known once they are extracted
		return nil
	}
	size := backup.Status.Unpacked
	if spec.Mode == v1.RestoreMerge {
		size += volume.Status.Size
	}
	if size > limit {
		return v1.ErrSizeLimit
	}
	return nil
}

// inUseBy returns the first container, by id, that runs with a volume, or is about to;
// "" if there is none.
func inUseBy(tx *store.Tx, volume string) (string, error) {
	for _, id := range slices.Sorted(slices.Values(HoldersOf(tx, volume))) {
		c, err := store.Containers.Get(tx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if runsOrWill(c) {
			return id, nil
		}
	}
	return "", nil
}

// runsOrWill reports whether the server or the installer of a container runs, or is
// about to start.
func runsOrWill(c v1.Container) bool {
	st := c.Status
	switch {
	case st.Phase.Active(), st.Phase == v1.Deleting, c.Meta.Deleted, v1.IsInstalling(c):
		return true
	case c.Spec.Power != v1.PowerOn, st.InstallFailed:
		return false
	}
	return st.ObservedRun != c.Spec.RunGeneration || st.NextRetryAt != nil
}
