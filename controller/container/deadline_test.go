package container_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/runtime"
)

// TestDeadlineOfInstallation: clients see when the installation is ended. A restart of berth
// measures its limit anew.
func TestDeadlineOfInstallation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.create(func(s *v1.ContainerSpec) { s.InstallTimeout = v1.Duration(30 * time.Minute) })
		began := time.Now()
		require.WithinDuration(t, began.Add(30*time.Minute), *v1.Deadline(w.want(v1.Installing)), 0)
		time.Sleep(10 * time.Minute)
		stop = restart(w, stop)
		synctest.Wait()
		require.WithinDuration(t, began.Add(30*time.Minute), *v1.Deadline(w.want(v1.Installing)), 0)
		time.Sleep(29 * time.Minute)
		w.want(v1.Installing)
		time.Sleep(2 * time.Minute)
		c := w.want(v1.Failed)
		require.Nil(t, v1.Deadline(c))
		require.Equal(t, "TimedOut", v1.FindCondition(c.Status.Conditions, v1.Installed).Reason)
		stop()
	})
}

// TestDeadlineEndsWithInstaller: an installation that has to begin anew, or that is
// deleted, has no deadline.
func TestDeadlineEndsWithInstaller(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		require.NotNil(t, v1.Deadline(w.want(v1.Installing)))
		agree := w.refuse("create", installer, runtime.ErrUnavailable)
		w.engine.Outside.Vanish(installer)
		time.Sleep(2 * time.Minute)
		require.Nil(t, v1.Deadline(w.want(v1.Installing)))
		agree()
		time.Sleep(5 * time.Minute)
		require.NotNil(t, v1.Deadline(w.want(v1.Installing)))
		w.refuse("kill", installer, runtime.ErrUnavailable)
		require.NoError(t, intent.DeleteContainer(w.store, "mc"))
		require.Nil(t, v1.Deadline(w.want(v1.Deleting)))
	})
}
