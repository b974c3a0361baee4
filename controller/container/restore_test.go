package container_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// restoring begins a restore of the volume v; end ends it.
func restoring(w *world) (end func()) {
	w.t.Helper()
	update(w, func(tx *store.Tx) error {
		return store.BeginRestore(tx, "r", v1.RestoreSpec{RestoreRequest: v1.RestoreRequest{VolumeID: "v"}})
	})
	return func() {
		update(w, func(tx *store.Tx) error { return store.EndRestore(tx, "r", "v") })
		time.Sleep(61 * time.Second) // the next resync
	}
}

func update(w *world, fn func(*store.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(fn))
	synctest.Wait()
}

func withVolume(w *world) {
	w.t.Helper()
	update(w, func(tx *store.Tx) error { return store.Volumes.Create(tx, "v", v1.VolumeSpec{}) })
}

// TestRestoreStopsRun: the container is stopped, keeps its power, and runs again
// afterwards.
func TestRestoreStopsRun(t *testing.T) {
	live(t, func(w *world) {
		withVolume(w)
		w.installed(nil)
		w.change(on)
		w.want(v1.Running)
		end := restoring(w)
		time.Sleep(2 * time.Minute)
		require.Equal(t, v1.PowerOn, w.want(v1.Exit).Spec.Power)
		time.Sleep(time.Hour)
		w.want(v1.Exit)
		end()
		w.want(v1.Running)
	})
}

// TestStartWaitsForRestore: and a kill meanwhile wins.
func TestStartWaitsForRestore(t *testing.T) {
	live(t, func(w *world) {
		withVolume(w)
		w.installed(nil)
		end := restoring(w)
		w.change(on)
		time.Sleep(time.Hour)
		w.want(v1.Ready)
		end()
		w.want(v1.Running)

		end = restoringAgain(w)
		time.Sleep(2 * time.Minute)
		w.want(v1.Exit)
		w.change(kill)
		end()
		w.want(v1.Exit)
	})
}

// TestRestoreBegunAfterThePlan: a restore waits for starts that are recorded only, so none is recorded once it has begun,
// also if the step was planned before.
func TestRestoreBegunAfterThePlan(t *testing.T) {
	live(t, func(w *world) {
		withVolume(w)
		w.installed(nil)
		begun := false
		w.engine.Outside.Fail(func(op string, _ runtime.Name) error { // startServer asks for it before it records the start
			if op != "instance" || begun {
				return nil
			}
			begun = true
			return w.store.Update(func(tx *store.Tx) error {
				return store.BeginRestore(tx, "r", v1.RestoreSpec{RestoreRequest: v1.RestoreRequest{VolumeID: "v"}})
			})
		})
		w.change(on)
		require.True(t, begun)
		w.want(v1.Ready)
		update(w, func(tx *store.Tx) error { return store.EndRestore(tx, "r", "v") })
		time.Sleep(61 * time.Second) // the next resync
		w.want(v1.Running)
	})
}

// restoringAgain is restoring for a second restore.
func restoringAgain(w *world) (end func()) {
	w.t.Helper()
	update(w, func(tx *store.Tx) error { return store.Restores.Purge(tx, "r") })
	return restoring(w)
}

// TestInstallationWaitsForRestore: its installer does not begin meanwhile.
func TestInstallationWaitsForRestore(t *testing.T) {
	live(t, func(w *world) {
		withVolume(w)
		end := restoring(w)
		w.create(nil)
		time.Sleep(time.Minute)
		require.Contains(t, w.want(v1.Installing).Status.Message, "waits for the restore of its volume")
		require.Empty(t, w.engine.Outside.State(installer).ContainerID)
		require.Empty(t, w.get().Status.InstallVolume)
		end()
		require.NotEmpty(t, w.engine.Outside.State(installer).ContainerID)
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Ready)
	})
}

// TestExitedRunStaysExited: a restore starts nothing that the restart policy has ended.
func TestExitedRunStaysExited(t *testing.T) {
	live(t, func(w *world) {
		withVolume(w)
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 0)
		w.want(v1.Exit)
		restoring(w)()
		time.Sleep(time.Hour)
		w.want(v1.Exit)
	})
}
