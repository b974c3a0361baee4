package backup

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/storetest"
	"berth/store"
)

// TestDamagedBackupChangesNothing: missing, truncated, longer and altered archives.
func TestDamagedBackupChangesNothing(t *testing.T) {
	live(t, func(w *world) {
		w.backup("b", nil)
		w.want("b", v1.JobCompleted)
		key := v1.ArchiveKey("b")
		w.trees.set("v", "newer")
		for i, damage := range []func(b []byte) []byte{
			func(b []byte) []byte { return b[:len(b)-1] },
			func(b []byte) []byte { return append(b, 'x') },
			func(b []byte) []byte { b[3] ^= 1; return b },
			nil,
		} {
			before := w.target.stored[key]
			if damage == nil {
				w.target.set(func() { delete(w.target.stored, key) })
			} else {
				w.target.set(func() { w.target.stored[key] = damage(append([]byte(nil), before...)) })
			}
			id := fmt.Sprint("r", i)
			w.restore(id, "b", "v")
			require.NotContains(t, w.restored(id, v1.JobFailed).Status.Message, "/secret")
			require.Equal(t, "newer", w.trees.get("v"))
			require.Empty(t, w.restoring("v"))
			w.target.set(func() { w.target.stored[key] = before })
		}
	})
}

func TestRestoreOfPaths(t *testing.T) {
	live(t, func(w *world) {
		w.backup("b", nil)
		w.want("b", v1.JobCompleted)
		w.update(func(tx *store.Tx) error {
			return store.BeginRestore(tx, "r", v1.RestoreSpec{BackupID: "b", RestoreRequest: v1.RestoreRequest{VolumeID: "v", Mode: v1.RestoreMerge, Paths: []string{"world"}}})
		})
		w.restored("r", v1.JobCompleted)
		require.Equal(t, "tree of v only world", w.trees.get("v"))
	})
}

// TestRestoreWaitsForContainers: those of the records, and those that only the engine
// knows.
func TestRestoreWaitsForContainers(t *testing.T) {
	live(t, func(w *world) {
		w.backup("b", nil)
		w.update(func(tx *store.Tx) error { return store.Containers.Create(tx, "mc", v1.ContainerSpec{VolumeID: "v"}) })
		phase := func(p v1.Phase) {
			w.update(func(tx *store.Tx) error {
				return store.Containers.SetStatus(tx, "mc", func(s *v1.ContainerStatus) { s.Phase = p })
			})
		}
		phase(v1.Running)
		w.mu.Lock()
		w.busy = "orphan"
		w.mu.Unlock()
		w.trees.set("v", "newer")
		w.restore("r", "b", "v")
		time.Sleep(time.Minute)
		w.restored("r", v1.JobPending)
		phase(v1.Exit)
		time.Sleep(time.Minute)
		w.restored("r", v1.JobPending)
		w.mu.Lock()
		w.busy = ""
		w.mu.Unlock()
		time.Sleep(2 * time.Second)
		w.restored("r", v1.JobCompleted)
		require.Equal(t, "tree of v", w.trees.get("v"))
	})
}

// TestBegunInstallationDelaysRestore: one that uses the volume, not one that waits for it.
func TestBegunInstallationDelaysRestore(t *testing.T) {
	live(t, func(w *world) {
		w.backup("b", nil)
		w.update(func(tx *store.Tx) error {
			return store.Containers.Create(tx, "mc", v1.ContainerSpec{VolumeID: "v", InstallGeneration: 1})
		})
		install := func(volume string) {
			w.update(func(tx *store.Tx) error {
				return store.Containers.SetStatus(tx, "mc", func(s *v1.ContainerStatus) {
					s.Phase, s.StartedInstall, s.InstallVolume = v1.Installing, 1, volume
				})
			})
		}
		install("v")
		w.restore("r", "b", "v")
		time.Sleep(time.Minute)
		w.restored("r", v1.JobPending)
		install("")
		time.Sleep(2 * time.Second)
		w.restored("r", v1.JobCompleted)
	})
}

func TestInterruptedRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.backup("b", nil)
		stop()
		w.restore("r", "b", "v")
		for range 3 { // killed after the record, before the job
			w.update(func(tx *store.Tx) error {
				return store.Restores.SetStatus(tx, "r", func(s *v1.RestoreStatus) { s.State = v1.JobRunning; s.Attempts++ })
			})
		}
		stop = w.run()
		require.Contains(t, w.restored("r", v1.JobFailed).Status.Message, "interrupted 3 times")
		require.Empty(t, w.restoring("v"))
		stop()
	})
}

func TestLastRestoresAreKept(t *testing.T) {
	live(t, func(w *world) {
		w.backup("b", nil)
		for i := range v1.KeptRestores + 5 {
			w.restore(fmt.Sprintf("r%02d", i), "b", "v")
			w.restored(fmt.Sprintf("r%02d", i), v1.JobCompleted)
			w.clock.Add(-int64(time.Minute)) // the host's clock goes back
			time.Sleep(time.Second)
		}
		ids := store.Restores.IDsBy(w.store.Read(), "b")
		require.Len(t, ids, v1.KeptRestores)
		require.Equal(t, "r05", ids[0])
	})
}

// TestDamagedRestore: a restore whose record cannot be read keeps neither the volumes of
// others nor its own, and keeps no backup.
func TestDamagedRestore(t *testing.T) {
	live(t, func(w *world) {
		w.volume("w", "tree of w")
		w.backup("b", nil)
		w.want("b", v1.JobCompleted)
		w.update(func(tx *store.Tx) error {
			return errors.Join(store.BeginRestore(tx, "damaged", v1.RestoreSpec{BackupID: "b", RestoreRequest: v1.RestoreRequest{VolumeID: "w"}}), storetest.Damage(tx, "restore", "damaged"))
		})
		w.restore("r", "b", "v")
		w.restored("r", v1.JobCompleted)
		require.Empty(t, w.restoring("v"))
		require.Empty(t, w.restoring("w"), "nobody can carry it out")
		require.False(t, isUsed(w.store.Read(), "b"))
	})
}

// TestBusyVolumeDelaysNoOther: a restore waits for a permit, and its volume is in use when
// its turn comes. The others go on.
func TestBusyVolumeDelaysNoOther(t *testing.T) {
	live(t, func(w *world) {
		w.backup("first", nil)
		w.want("first", v1.JobCompleted)
		hold := make(chan struct{})
		w.target.set(func() { w.target.hold = hold })
		w.volume("w", "w")
		w.volume("x", "old")
		w.backup("runs", func(s *v1.BackupSpec) { s.VolumeID = "w" })
		w.restore("r", "first", "x")
		w.restored("r", v1.JobPending)
		w.mu.Lock()
		w.busy = "orphan"
		w.mu.Unlock()
		close(hold)
		w.want("runs", v1.JobCompleted)
		w.backup("next", func(s *v1.BackupSpec) { s.VolumeID = "w" })
		time.Sleep(time.Minute)
		w.want("next", v1.JobCompleted)
		w.restored("r", v1.JobPending)
		w.mu.Lock()
		w.busy = ""
		w.mu.Unlock()
		time.Sleep(2 * time.Second)
		w.restored("r", v1.JobCompleted)
	})
}

// TestRestoresStarveNoBackup: two volumes are restored by turns, again and again, and a
// backup of another one begins all the same.
func TestRestoresStarveNoBackup(t *testing.T) {
	live(t, func(w *world) {
		w.backup("b", nil)
		w.want("b", v1.JobCompleted)
		read := make(chan struct{})
		w.target.set(func() { w.target.read = read })
		w.volume("w", "w")
		w.volume("x", "x")
		w.restore("r0", "b", "w")
		w.restored("r0", v1.JobRunning)
		w.backup("waits", nil)
		w.want("waits", v1.JobPending)
		volumes := []string{"w", "x"}
		for i := 1; ; i++ {
			w.restore(fmt.Sprint("r", i), "b", volumes[i%2])
			read <- struct{}{} // the restore before it ends
			waits, err := w.get("waits")
			require.NoError(t, err)
			if waits.Status.State == v1.JobCompleted {
				break
			}
			require.Less(t, i, 5, "restores that began before the backup")
			w.restored(fmt.Sprint("r", i), v1.JobRunning)
		}
		close(read)
	})
}
