package backup

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

func quiesce(s *v1.BackupSpec) {
	s.Quiesce = &v1.Quiesce{Container: "mc", Before: "save-off", WaitFor: "Saved", After: "save-on", Timeout: v1.Duration(30 * time.Second)}
}

// users creates the container mc, which uses the volume v.
func users(w *world) {
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
		return store.Containers.Create(tx, "mc", v1.ContainerSpec{Image: "i", VolumeID: "v"})
	}))
}

// TestQuiesceOfAnotherContainer: nobody types into the console of a container that has
// the id of the one that was named, and does not use the volume.
func TestQuiesceOfAnotherContainer(t *testing.T) {
	live(t, func(w *world) {
		w.backup("a", quiesce)
		w.want("a", v1.JobCompleted)
		users(w)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { s.VolumeID = "other"; return nil })
		}))
		w.backup("b", quiesce)
		w.want("b", v1.JobCompleted)
		require.Empty(t, w.console.commands())
	})
}

func TestQuiesce(t *testing.T) {
	live(t, func(w *world) {
		users(w)
		w.backup("b", quiesce)
		require.False(t, w.want("b", v1.JobCompleted).Status.ResumeDue)
		require.Equal(t, []string{"save-off", "save-on"}, w.console.commands())

		w.console.set(func() { w.console.silent = true })
		w.backup("c", quiesce)
		time.Sleep(31 * time.Second)
		require.Contains(t, w.want("c", v1.JobFailed).Status.Message, "wait_for")
		require.Equal(t, []string{"save-off", "save-on", "save-off", "save-on"}, w.console.commands())

		w.console.set(func() { w.console.running = false })
		w.backup("d", quiesce)
		w.want("d", v1.JobCompleted)
		require.Len(t, w.console.commands(), 4, "a container that does not run gets no commands")
	})
}

// TestResumeAfterCrash: the second command is sent although berth was killed after the
// first one, and the backup begins again after it.
func TestResumeAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		users(w)
		hold := make(chan struct{})
		w.target.set(func() { w.target.hold = hold })
		stop := w.run()
		w.backup("b", quiesce)
		require.True(t, w.want("b", v1.JobRunning).Status.ResumeDue)
		w.console.set(func() { w.console.fail = errors.New("the daemon dies") })
		stop()
		require.True(t, w.want("b", v1.JobRunning).Status.ResumeDue)
		require.Equal(t, []string{"save-off"}, w.console.commands())
		w.console.set(func() { w.console.fail = nil })
		close(hold)
		defer w.run()()
		w.want("b", v1.JobCompleted)
		require.Equal(t, []string{"save-off", "save-on", "save-off", "save-on"}, w.console.commands())
	})
}

// TestResumeIsRetried: while the console cannot be reached, and also after the backup
// has ended.
func TestResumeIsRetried(t *testing.T) {
	live(t, func(w *world) {
		users(w)
		hold := make(chan struct{})
		w.target.set(func() { w.target.hold = hold })
		w.backup("b", quiesce)
		w.console.set(func() { w.console.fail = errors.New("unreachable") })
		close(hold)
		require.True(t, w.want("b", v1.JobCompleted).Status.ResumeDue)
		time.Sleep(time.Hour)
		require.True(t, w.want("b", v1.JobCompleted).Status.ResumeDue)
		w.console.set(func() { w.console.fail = nil })
		time.Sleep(2 * time.Minute)
		require.False(t, w.want("b", v1.JobCompleted).Status.ResumeDue)
		require.Equal(t, []string{"save-off", "save-on"}, w.console.commands())
	})
}
