package volume_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/store"
)

// TestUnchangedVolumeIsNotUpdated has a resync of a volume while an update of another
// client keeps the store's writer: a reconcile that finds nothing new does not wait for it.
func TestUnchangedVolumeIsNotUpdated(t *testing.T) {
	live(t, func(w *world) {
		checks := func() (n int) { w.disk.set(func() { n = w.disk.checks }); return n }
		w.create(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		hold, held, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- w.store.Update(func(*store.Tx) error { close(held); <-hold; return nil })
		}()
		release := sync.OnceFunc(func() { close(hold) })
		defer release()
		<-held
		checked := checks()
		for range 3 {
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		require.GreaterOrEqual(t, checks()-checked, 3, "each resync checks the directory")
		release()
		require.NoError(t, <-ended)

		w.disk.set(func() { w.disk.used = 5000 })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		v, err := w.get()
		require.NoError(t, err)
		require.Equal(t, int64(5000), v.Status.Size, "a change is recorded")
	})
}
