package intent

import (
	"errors"
	"slices"

	v1 "berth/api/v1"
	"berth/store"
)

// RestoreBackup requests a restore, whose mode CheckRestoreMode has accepted. Its
// refusals are v1.ErrBackupNotFound, v1.ErrVolumeNotFound,
// v1.ErrNotCompleted, v1.ErrVolumeRestoring, v1.ErrSizeLimit, and the code VolumeInUse
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
	if store.Restoring(tx, id) != "" {
		return v1.ErrVolumeRestoring
	}
	by, err := inUseBy(tx, id)
	switch {
	case err != nil:
		return err
	case by != "" && !spec.Stop:
		return errVolumeInUse(by)
	}
	limit, err := limitOf(tx, volume)
	if err != nil || limit == 0 {
		return err
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

// limitOf returns the smallest limit of a volume and of the containers that use it, in
// bytes; 0: none.
func limitOf(tx *store.Tx, v v1.Volume) (int64, error) {
	var users []v1.ContainerSpec
	for _, id := range UsersOf(tx, v.Meta.ID) {
		c, err := store.Containers.Get(tx, id)
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return 0, err
		}
		users = append(users, c.Spec)
	}
	return v1.SmallestLimit(v.Spec, users), nil
}
