package container_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/container"
	"berth/store"
)

// atRest runs a test with a world whose container runs and needs nothing. No loop runs:
// the test reconciles.
func atRest(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		update(w, func(tx *store.Tx) error { return store.Volumes.Create(tx, "v", v1.VolumeSpec{SizeLimit: 100}) })
		w.create(func(s *v1.ContainerSpec) { s.InstallScript, s.RunGeneration, s.Power = "", 1, v1.PowerOn })
		settle(w)
		w.want(v1.Running)
		test(w)
	})
}

// settle reconciles until nothing is left to do.
func settle(w *world) {
	w.t.Helper()
	for range 30 {
		if res, err := w.rec.Reconcile(w.t.Context(), "mc"); res == (controller.Result{}) {
			require.NoError(w.t, err)
			if _, err := w.rec.Reconcile(w.t.Context(), "mc"); err == nil {
				return
			}
		}
		synctest.Wait()
	}
	w.t.Fatal("the container does not settle")
}

// TestSettledReadsNoStore: a store that is closed fails each read.
func TestSettledReadsNoStore(t *testing.T) {
	atRest(t, func(w *world) {
		require.NoError(t, w.store.Close())
		for range 3 {
			res, err := w.rec.Reconcile(t.Context(), "mc")
			require.NoError(t, err)
			require.Zero(t, res)
		}
		w.engine.Outside.Exit(server, 0)
		_, err := w.rec.Reconcile(t.Context(), "mc")
		require.ErrorIs(t, err, store.ErrClosed)
	})
}

func TestSettledIsPlannedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *world)
		seen   func(c v1.Container) bool
	}{
		"usage of the volume": {
			func(w *world) {
				update(w, func(tx *store.Tx) error {
					return store.Volumes.SetStatus(tx, "v", func(s *v1.VolumeStatus) { s.Size = 1 << 30 })
				})
			},
			func(c v1.Container) bool {
				return v1.FindCondition(c.Status.Conditions, v1.DiskPressure).Status == v1.True
			},
		},
		"restore of the volume": {
			func(w *world) { restoring(w) },
			func(c v1.Container) bool { return c.Status.Phase == v1.Stopping },
		},
		"spec": {
			func(w *world) { w.change(func(s *v1.ContainerSpec) { s.Power = v1.PowerOff }) },
			func(c v1.Container) bool { return c.Status.Phase == v1.Stopping },
		},
		"engine": {
			func(w *world) {
				ctx, listed := context.WithCancel(w.t.Context())
				require.ErrorIs(w.t, container.Watch(w.engine, w.rec.Outage, listed)(ctx, func(string) {}), context.Canceled)
			},
			func(c v1.Container) bool { return c.Status.Engine != "" },
		},
		"exit": {
			func(w *world) { w.engine.Outside.Exit(server, 3) },
			func(c v1.Container) bool { return c.Status.Phase == v1.Exit && *c.Status.ExitCode == 3 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			atRest(t, func(w *world) {
				tc.change(w)
				_, err := w.rec.Reconcile(t.Context(), "mc")
				require.NoError(t, err)
				require.True(t, tc.seen(w.get()), "%+v", w.get().Status)
			})
		})
	}
}

// TestSettledConsoleIsFollowedAgain: a console whose stream has ended is read again.
func TestSettledConsoleIsFollowedAgain(t *testing.T) {
	atRest(t, func(w *world) {
		before := w.console.follows.Load()
		settle(w)
		require.Equal(t, before, w.console.follows.Load())
		w.console.lost.Store(true)
		_, err := w.rec.Reconcile(t.Context(), "mc")
		require.NoError(t, err)
		require.Equal(t, before+1, w.console.follows.Load())
	})
}
