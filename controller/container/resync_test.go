package container_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// TestResyncFindsLostEvents: what happened to a container while the engine's events were lost is found within
// one resync, although the resync inspects only what a list shows to differ.
func TestResyncFindsLostEvents(t *testing.T) {
	running := func(s *v1.ContainerSpec) { on(s) }
	stopped := func(*v1.ContainerSpec) {}
	for _, tc := range []struct {
		what    string
		power   func(*v1.ContainerSpec)
		outside func(w *world)
		found   func(w *world) bool
	}{
		{"died", running, func(w *world) { w.engine.Outside.Exit(server, 1) }, func(w *world) bool { return w.get().Status.Crashes == 1 }},
		{"removed", running, func(w *world) { w.engine.Outside.Vanish(server) }, func(w *world) bool { return w.count("create", server) == 2 }},
		{"removed while it does not run", stopped, func(w *world) { w.engine.Outside.Vanish(server) }, func(w *world) bool { return w.count("create", server) == 2 }},
		{"started by hand", stopped, func(w *world) { require.NoError(w.t, w.engine.Outside.StartOutside(server)) },
			func(w *world) bool { return !w.engine.Outside.State(server).Running }},
		{"restarted by hand", running, func(w *world) {
			w.engine.Outside.Exit(server, 0)
			require.NoError(w.t, w.engine.Outside.StartOutside(server))
		}, func(w *world) bool { return w.get().Status.StartedAt.Equal(w.engine.Outside.State(server).StartedAt) }},
		{"recreated", stopped, func(w *world) { require.NoError(w.t, w.engine.Outside.Recreate(server)) },
			func(w *world) bool { return w.get().Status.ContainerID == w.engine.Outside.State(server).ContainerID }},
		{"recreated and started", running, func(w *world) {
			w.engine.Outside.Exit(server, 0)
			require.NoError(w.t, w.engine.Outside.Recreate(server))
			require.NoError(w.t, w.engine.Outside.StartOutside(server))
		}, func(w *world) bool { return w.get().Status.ContainerID == w.engine.Outside.State(server).ContainerID }},
		{"label changed", stopped, func(w *world) { w.engine.Outside.Relabel(server, "other") },
			func(w *world) bool { return w.engine.Outside.State(server).SpecHash == w.get().Spec.SpecHash() }},
		{"paused", running, func(w *world) { w.engine.Outside.Pause(server) }, func(w *world) bool { return !w.engine.Outside.State(server).Paused }},
		{"disconnected", running, func(w *world) { w.engine.Outside.Detach(server) }, func(w *world) bool { return !w.engine.Outside.State(server).Detached }},
	} {
		t.Run(tc.what, func(t *testing.T) {
			live(t, func(w *world) {
				w.installed(nil)
				w.change(tc.power)
				time.Sleep(5*time.Minute + 30*time.Second) // between two resyncs
				w.engine.Outside.MuteWatch()
				tc.outside(w)
				synctest.Wait()
				require.False(t, tc.found(w), "its event is lost")
				time.Sleep(time.Minute)
				synctest.Wait()
				require.True(t, tc.found(w))
			})
		})
	}
}

// TestResyncOfAnOrphan: a container without a record whose creation was never reported is removed.
func TestResyncOfAnOrphan(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.MuteWatch()
		orphan := runtime.Name{ID: "late", Role: runtime.Server}
		_, err := w.engine.Create(t.Context(), runtime.Spec{Name: orphan, Image: "i", SpecHash: "h"})
		require.NoError(t, err)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		require.Empty(t, w.engine.Outside.State(orphan).ContainerID)
	})
}

// TestResyncOfUnchangedContainers makes one list of the engine, no inspect, and names nothing, also not what others
// changed and nothing follows from.
func TestResyncOfUnchangedContainers(t *testing.T) {
	live(t, func(w *world) {
		for i := range 6 {
			id := fmt.Sprintf("c%d", i)
			require.NoError(t, w.store.Update(func(tx *store.Tx) error {
				return store.Containers.Create(tx, id, v1.ContainerSpec{Image: "i", VolumeID: id, InstallGeneration: 1, Power: v1.PowerOff,
					Limits: v1.Limits{Memory: 64 << 20}, RestartPolicy: v1.RestartPolicy{Mode: v1.RestartNever}})
			}))
			synctest.Wait()
			if i%2 == 0 {
				w.changeOf(id, on)
			}
			if i == 4 {
				w.engine.Outside.Exit(runtime.Name{ID: id, Role: runtime.Server}, 1)
			}
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		lists, inspects := w.engine.Outside.Reads("list"), w.engine.Outside.Reads("inspect")
		ctx, cancel := context.WithCancel(w.t.Context())
		defer cancel()
		var named []string
		resync := w.rec.Resync(time.Minute)
		ended := make(chan error, 1)
		go func() { ended <- resync(ctx, func(id string) { named = append(named, id) }) }()
		time.Sleep(10*time.Minute + time.Second)
		cancel()
		require.NoError(t, <-ended)
		require.Empty(t, named)
		require.Equal(t, inspects, w.engine.Outside.Reads("inspect"))
		require.Equal(t, lists+20, w.engine.Outside.Reads("list"), "one for each of this resync, and of that of the loop")
	})
}

// TestResyncNamesUnfinishedWork: what is not at rest is reconciled at each resync, as the error of an engine
// that refuses a spec is retried there.
func TestResyncNamesUnfinishedWork(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		agree := w.refuse("create", server, runtime.ErrInvalid)
		w.change(func(s *v1.ContainerSpec) { s.Workdir = "/w" })
		time.Sleep(time.Hour)
		tries := w.count("create", server)
		agree()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Greater(t, w.count("create", server), tries)
		require.Equal(t, w.get().Spec.SpecHash(), w.engine.Outside.State(server).SpecHash)
	})
}
