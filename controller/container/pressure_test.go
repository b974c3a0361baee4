package container_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// limited gives the volume a limit of 1000 bytes. size is how many it holds
// then, as a resync finds.
func (w *world) limited() (size func(bytes int64)) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
		return store.Volumes.Create(tx, "v", v1.VolumeSpec{SizeLimit: 1000})
	}))
	return func(bytes int64) {
		require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
			return store.Volumes.SetStatus(tx, "v", func(s *v1.VolumeStatus) { s.Size = bytes })
		}))
		time.Sleep(61 * time.Second) // the next resync
	}
}

func TestAVolumeOverItsLimitEndsARunAfterAGrace(t *testing.T) {
	live(t, func(w *world) {
		size := w.limited()
		w.installed(func(s *v1.ContainerSpec) { s.Limits.Disk = 2000 })
		w.wish(on)
		size(1001) // the smaller limit counts
		c := w.want(v1.Running)
		require.Equal(t, v1.True, v1.FindCondition(c.Status.Conditions, v1.DiskPressure).Status)
		time.Sleep(2 * time.Minute)
		require.Contains(t, w.want(v1.Exit).Status.Message, "goes on when there is space")
		w.wish(on)
		time.Sleep(time.Hour)
		require.Contains(t, w.want(v1.Exit).Status.Message, "goes on when there is space")
		size(1000)
		require.Equal(t, v1.False, v1.FindCondition(w.want(v1.Running).Status.Conditions, v1.DiskPressure).Status)
	})
}

// TestARunThatWasStoppedForWantOfSpaceGoesOn also if the space is there before
// its end, which is none of its own.
func TestARunThatWasStoppedForWantOfSpaceGoesOn(t *testing.T) {
	live(t, func(w *world) {
		size := w.limited()
		w.installed(func(s *v1.ContainerSpec) { s.Stop.Timeout = v1.Duration(time.Hour) })
		w.wish(on)
		w.engine.Deafen(server)
		size(1001)
		time.Sleep(2 * time.Minute)
		w.want(v1.Stopping)
		size(1000)
		w.engine.Exit(server, 0)
		w.want(v1.Running)
		require.Equal(t, []string{"running", "stopping", "exit", "starting", "running"}, w.told()[3:])
	})
}
