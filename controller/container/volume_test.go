package container_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// makeVolumes creates volumes v and w.
func makeVolumes(w *world) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
		if err := store.Volumes.Create(tx, "v", v1.VolumeSpec{}); err != nil {
			return err
		}
		return store.Volumes.Create(tx, "w", v1.VolumeSpec{})
	}))
}

// refusesDeletion checks that volume v cannot be deleted, neither alone nor together
// with another container.
func refusesDeletion(w *world) {
	w.t.Helper()
	require.EqualError(w.t, intent.DeleteVolume(w.store, "v"), "Volume is in use by container mc")
}

func toW(s *v1.ContainerSpec) { s.VolumeID = "w" }

// TestVolumeHeldUntilServerIsGone: the spec names another volume, and the old
// container still has the old one mounted.
func TestVolumeHeldUntilServerIsGone(t *testing.T) {
	for _, op := range []string{"signal", "remove", "create"} { // which the engine refuses for a while
		t.Run(op, func(t *testing.T) {
			live(t, func(w *world) {
				makeVolumes(w)
				w.installed(nil)
				w.change(on)
				agree := w.refuse(op, server, runtime.ErrUnavailable)
				w.change(func(s *v1.ContainerSpec) { toW(s); s.RunGeneration++ })
				if op == "create" { // then no container mounts it any more
					require.Empty(t, w.engine.Outside.State(server).ContainerID)
					require.NoError(t, intent.DeleteVolume(w.store, "v"))
					return
				}
				refusesDeletion(w)
				time.Sleep(time.Hour)
				refusesDeletion(w)
				agree()
				time.Sleep(10 * time.Minute)
				w.want(v1.Running)
				require.Equal(t, "/volumes/w", w.engine.Outside.Spec(server).Mounts[0].Source)
				require.NoError(t, intent.DeleteVolume(w.store, "v"))
			})
		})
	}
}

func TestVolumeHeldUntilInstallerIsGone(t *testing.T) {
	live(t, func(w *world) {
		makeVolumes(w)
		w.create(nil)
		agree := w.refuse("kill", installer, runtime.ErrUnavailable)
		w.change(toW)
		require.True(t, w.engine.Outside.State(installer).Running)
		refusesDeletion(w)
		agree()
		time.Sleep(10 * time.Minute)
		require.Equal(t, "/volumes/w", w.engine.Outside.Spec(installer).Mounts[0].Source)
		require.NoError(t, intent.DeleteVolume(w.store, "v"))
	})
}

// TestServerBeingCreatedHoldsVolume: the response to the creation is lost, and the
// spec gets another volume in that moment.
func TestServerBeingCreatedHoldsVolume(t *testing.T) {
	live(t, func(w *world) {
		makeVolumes(w)
		var deletion error
		w.engine.Outside.After(func(op string, n runtime.Name) error {
			if op != "create" || n != server {
				return nil
			}
			w.engine.Outside.After(nil)
			require.NoError(t, w.store.Update(func(tx *store.Tx) error {
				return store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { toW(s); return nil })
			}))
			deletion = intent.DeleteVolume(w.store, "v")
			return runtime.ErrUnavailable
		})
		w.create(nil)
		w.engine.Outside.Exit(installer, 0)
		synctest.Wait()
		require.EqualError(t, deletion, "Volume is in use by container mc")
	})
}

// TestDeletedVolumeIsNotMounted: the spec changes, and the old volume
// is deleted, between the observation and the creation.
func TestDeletedVolumeIsNotMounted(t *testing.T) {
	live(t, func(w *world) {
		makeVolumes(w)
		w.installed(nil)
		before := w.count("create", server)
		w.engine.Outside.Fail(func(op string, n runtime.Name) error {
			if op != "inspect" || n != server || w.engine.Outside.State(server).ContainerID != "" {
				return nil
			}
			w.engine.Outside.Fail(nil)
			require.NoError(t, w.store.Update(func(tx *store.Tx) error {
				return store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { toW(s); return nil })
			}))
			require.NoError(t, intent.DeleteVolume(w.store, "v"))
			return nil
		})
		w.change(func(s *v1.ContainerSpec) { s.Workdir = "/new" })
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, "/volumes/w", w.engine.Outside.Spec(server).Mounts[0].Source)
		require.Equal(t, before+1, w.count("create", server))
	})
}
