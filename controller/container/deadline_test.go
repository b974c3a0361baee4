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

// TestDeadlineOfInstallation: clients see when the installation is ended, also after
// the host's clock was set or berth restarted.
func TestDeadlineOfInstallation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.create(func(s *v1.ContainerSpec) { s.InstallTimeout = v1.Duration(30 * time.Minute) })
		began := time.Now()
		require.WithinDuration(t, began.Add(30*time.Minute), *w.want(v1.Installing).Status.Deadline, 0)

		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Containers.SetStatus(tx, "mc", func(st *v1.ContainerStatus) { st.Message = "the volume is over its limit" })
		}))
		time.Sleep(10*time.Minute + time.Second)
		setClock(w, -time.Hour)
		time.Sleep(time.Minute) // the resync
		c := w.want(v1.Installing)
		require.WithinDuration(t, began.Add(-30*time.Minute), *c.Status.Deadline, time.Second)
		require.Equal(t, "the volume is over its limit", c.Status.Message)

		stop = restart(w, stop)
		synctest.Wait()
		require.WithinDuration(t, w.now().Add(30*time.Minute), *w.want(v1.Installing).Status.Deadline, time.Second, "measured anew")
		time.Sleep(29 * time.Minute)
		w.want(v1.Installing)
		time.Sleep(2 * time.Minute)
		c = w.want(v1.Failed)
		require.Nil(t, c.Status.Deadline)
		require.Equal(t, "TimedOut", v1.FindCondition(c.Status.Conditions, v1.Installed).Reason)
		stop()
	})
}

// TestDeadlineEndsWithInstaller: an installation that has to begin anew, or that is
// deleted, has no deadline.
func TestDeadlineEndsWithInstaller(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		require.NotNil(t, w.want(v1.Installing).Status.Deadline)
		agree := w.refuse("create", installer, runtime.ErrUnavailable)
		w.engine.Outside.Vanish(installer)
		time.Sleep(2 * time.Minute)
		require.Nil(t, w.want(v1.Installing).Status.Deadline)
		agree()
		time.Sleep(5 * time.Minute)
		require.NotNil(t, w.want(v1.Installing).Status.Deadline)
		w.refuse("kill", installer, runtime.ErrUnavailable)
		require.NoError(t, intent.DeleteContainer(w.store, "mc", false))
		require.Nil(t, w.want(v1.Deleting).Status.Deadline)
	})
}
