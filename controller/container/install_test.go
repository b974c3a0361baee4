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

// An apply may change the image while the script runs.
func TestInstallerRemovedIfServerImageRefused(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.RefusePull("gone", runtime.ErrImageNotFound)
		w.create(nil)
		w.change(func(s *v1.ContainerSpec) { s.Image = "gone" })
		w.engine.Outside.Exit(installer, 0)
		time.Sleep(time.Minute)
		c := w.want(v1.Failed)
		require.Equal(t, v1.ReasonImageNotFound, v1.FindCondition(c.Status.Conditions, v1.Installed).Reason)
		require.Empty(t, w.engine.Outside.State(installer).ContainerID)
	})
}

func TestFailingInstallAfterBootRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.create(nil)
		stop()
		w.engine.Outside.Exit(installer, 137)
		w.rec.BootID = "next"
		stop = w.run()
		defer func() { stop() }()
		w.want(v1.Installing)
		for range 5 {
			w.engine.Outside.Exit(installer, 3)
			synctest.Wait()
		}
		require.Equal(t, 2, w.count("start", installer))
		w.want(v1.Failed)
	})
}

func TestSwappedVolumesDoNotDeadlock(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		other := runtime.Name{ID: "other", Role: runtime.Install}
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Containers.Create(tx, "other", v1.ContainerSpec{Image: "i", VolumeID: "v2", InstallScript: new("x"), InstallGeneration: 1, Power: v1.PowerOff})
		}))
		synctest.Wait()
		require.True(t, w.engine.Outside.State(other).Running)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			if err := store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { s.VolumeID = "v2"; return nil }); err != nil {
				return err
			}
			return store.Containers.SetSpec(tx, "other", func(s *v1.ContainerSpec) error { s.VolumeID = "v"; return nil })
		}))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.True(t, w.engine.Outside.State(installer).Running, w.get().Status.Message+"; "+w.getOf("other").Status.Message)
		require.True(t, w.engine.Outside.State(other).Running)
	})
}

// TestWaitingForVolumeCallsNoEngine: the volume is polled while the script of another
// container runs.
func TestWaitingForVolumeCallsNoEngine(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		other := runtime.Name{ID: "other", Role: runtime.Server}
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Containers.Create(tx, "other", v1.ContainerSpec{Image: "i", VolumeID: "v", InstallGeneration: 1, Power: v1.PowerOff})
		}))
		time.Sleep(time.Minute)
		c := w.getOf("other")
		require.Equal(t, v1.Installing, c.Status.Phase)
		require.Contains(t, c.Status.Message, "container mc")
		require.Equal(t, 1, w.count("create", other))
		w.engine.Outside.Exit(installer, 0)
		time.Sleep(time.Second)
		require.Equal(t, v1.Ready, w.getOf("other").Status.Phase)
	})
}

// TestUnknownServerDoesNotBlockInstall: the response to the creation of the server was
// lost, then the spec changed, and the server was started from outside.
func TestUnknownServerDoesNotBlockInstall(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.After(func(op string, n runtime.Name) error {
			if op != "create" || n != server {
				return nil
			}
			w.engine.Outside.After(nil)
			require.NoError(t, w.engine.Outside.StartOutside(server))
			require.NoError(t, w.store.Update(func(tx *store.Tx) error {
				return store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { s.Workdir = "/new"; return nil })
			}))
			return runtime.ErrUnavailable
		})
		w.create(nil)
		w.engine.Outside.Exit(installer, 0)
		time.Sleep(time.Minute)
		w.want(v1.Ready)
		require.False(t, w.engine.Outside.State(server).Running)
	})
}

// TestNoRetryAfterFailedInstall: somebody starts the server of an installation that failed. Its
// exit has no next start, although a run is requested.
func TestNoRetryAfterFailedInstall(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(func(s *v1.ContainerSpec) { s.InstallGeneration++; on(s) })
		w.engine.Outside.Exit(installer, 7)
		w.want(v1.Failed)
		require.NoError(t, w.engine.Outside.StartOutside(server))
		time.Sleep(time.Minute)
		require.Nil(t, w.want(v1.Exit).Status.NextRetryAt)
	})
}
