package intent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// TestRestoreNeedsAnIdleVolume: a container that waits for its next run is about to write its volume, and a volume that a
// container's engine still mounts is not removed.
func TestRestoreNeedsAnIdleVolume(t *testing.T) {
	w := newWorld(t)
	backup := intent.NewID()
	update := func(fn func(tx *store.Tx) error) {
		t.Helper()
		require.NoError(t, w.store.Update(fn))
	}
	status := func(change func(*v1.ContainerStatus)) {
		t.Helper()
		update(func(tx *store.Tx) error { return store.Containers.SetStatus(tx, "mc", change) })
	}
	restore := func() error {
		return intent.RestoreBackup(w.store, "r", v1.RestoreSpec{BackupID: backup, RestoreRequest: v1.RestoreRequest{VolumeID: w.volume}})
	}
	update(func(tx *store.Tx) error {
		spec := v1.ContainerSpec{VolumeID: w.volume, Power: v1.PowerOn, RunGeneration: 1}
		return store.Containers.Create(tx, "mc", spec)
	})
	update(func(tx *store.Tx) error { return store.Backups.Create(tx, backup, v1.BackupSpec{VolumeID: w.volume}) })
	require.ErrorIs(t, restore(), v1.ErrNotCompleted)
	update(func(tx *store.Tx) error {
		return store.Backups.SetStatus(tx, backup, func(st *v1.BackupStatus) { st.State = v1.JobCompleted })
	})
	next := time.Now().Add(time.Hour)
	status(func(st *v1.ContainerStatus) { st.Phase, st.ObservedRun, st.NextRetryAt = v1.Exit, 1, &next })
	require.ErrorIs(t, restore(), &v1.Error{Code: v1.VolumeInUse})
	status(func(st *v1.ContainerStatus) { st.NextRetryAt = nil })
	require.NoError(t, restore())
	require.ErrorIs(t, intent.DeleteBackup(w.store, backup), &v1.Error{Code: v1.BackupInUse})

	update(func(tx *store.Tx) error { return store.EndRestore(tx, "r", w.volume) })
	other := intent.NewID()
	update(func(tx *store.Tx) error { return store.Volumes.Create(tx, other, v1.VolumeSpec{}) })
	status(func(st *v1.ContainerStatus) { st.ServerVolume = other })
	require.ErrorIs(t, intent.DeleteVolume(w.store, other), &v1.Error{Code: v1.VolumeInUse})
}
