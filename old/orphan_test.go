package container_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
)

func TestOrphanRemovedAfterGracePeriod(t *testing.T) {
	live(t, func(w *world) {
		old, young := runtime.Name{ID: "old", Role: runtime.Server}, runtime.Name{ID: "young", Role: runtime.Server}
		w.installed(nil)                                                            // raises the store's revision
		_, err := w.engine.Create(t.Context(), runtime.Spec{Name: old, Image: "i"}) // before the store was opened
		require.NoError(t, err)
		_, err = w.engine.Create(t.Context(), runtime.Spec{Name: young, Image: "i", Revision: 1 << 40})
		require.NoError(t, err)
		require.NoError(t, w.engine.Outside.StartOutside(old))
		require.NoError(t, w.engine.Outside.StartOutside(young))
		time.Sleep(50 * time.Second)
		synctest.Wait()
		require.True(t, w.engine.Outside.State(old).Running, "reported first")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Empty(t, w.engine.Outside.State(old).ContainerID)
		require.True(t, w.engine.Outside.State(young).Running, "the store may be an old copy")
	})
}

// TestNewerContainersAreKept: the store passes the revision at which they were created,
// and berth is restarted.
func TestNewerContainersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(nil)
		young := runtime.Name{ID: "young", Role: runtime.Server}
		_, err := w.engine.Create(t.Context(), runtime.Spec{Name: young, Image: "i", Revision: w.store.Revision() + 2})
		require.NoError(t, err)
		require.NoError(t, w.engine.Outside.StartOutside(young))
		time.Sleep(time.Minute)
		for range 5 {
			w.change(func(s *v1.ContainerSpec) { s.StartPattern += "x" })
		}
		stop()
		stop = w.run()
		defer func() { stop() }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.True(t, w.engine.Outside.State(young).Running, "a restored store has never known it")
	})
}
