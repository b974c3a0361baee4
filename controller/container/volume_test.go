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

// directory records what the controller of volumes has found at the path of volume v.
func directory(w *world, status, reason string) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
		return store.Volumes.SetStatus(tx, "v", func(s *v1.VolumeStatus) {
			s.Conditions = v1.SetCondition(s.Conditions, v1.Condition{Type: v1.DirectoryReady, Status: status, Reason: reason}, tx.Now())
		})
	}))
	synctest.Wait()
}

// reported returns the reason and the text of every message so far that has a reason.
func reported(w *world) (list []string) {
	w.t.Helper()
	require.NoError(w.t, w.store.View(func(tx *store.Tx) error {
		events, err := store.ReadEvents(tx, 0, 1000)
		for _, e := range events {
			if e.Event == v1.EventMessage && e.Reason != "" {
				list = append(list, e.Container+" "+e.Reason+": "+e.Data)
			}
		}
		return err
	}))
	return list
}

// TestVolumeOfRunningContainerIsLost: the directory is removed and comes back while the
// container runs.
func TestVolumeOfRunningContainerIsLost(t *testing.T) {
	live(t, func(w *world) {
		makeVolumes(w)
		w.installed(nil)
		w.change(on)
		directory(w, v1.True, "Ready")
		require.Empty(t, v1.FindCondition(w.want(v1.Running).Status.Conditions, v1.VolumeReady), "it was never missing")
		lost := "the directory of the volume is missing on the host, and what the container writes may be lost: stop the container, then put the directory back or restore a backup"
		for _, reason := range []string{v1.ReasonDirectoryMissing, v1.ReasonNotADirectory, "Failed"} { // the last says nothing
			directory(w, v1.False, reason)
			c := w.want(v1.Running)
			require.Equal(t, "False VolumeMissing", conditions(w)[v1.VolumeReady])
			require.Equal(t, lost, c.Status.Message)
		}
		w.change(func(s *v1.ContainerSpec) { s.RunGeneration++ })
		require.Equal(t, lost, w.want(v1.Running).Status.Message, "a restart does not hide it")
		require.Equal(t, []string{"mc VolumeMissing: " + lost}, reported(w), "it is reported once")

		directory(w, v1.True, "Ready")
		back := "the directory of the volume is there again: restart the container, unless the same directory was moved back; until then it uses the one before"
		require.Equal(t, back, w.want(v1.Running).Status.Message)
		require.Equal(t, "True Present", conditions(w)[v1.VolumeReady])
		require.Equal(t, "mc Present: "+back, reported(w)[1])
		w.change(func(s *v1.ContainerSpec) { s.RunGeneration++ })
		require.Empty(t, w.want(v1.Running).Status.Message)
	})
}

// TestVolumeOfStoppedContainerIsLost: the loss, the only news of a container at rest,
// does not replace why it exited.
func TestVolumeOfStoppedContainerIsLost(t *testing.T) {
	live(t, func(w *world) {
		makeVolumes(w)
		w.installed(nil)
		directory(w, v1.False, v1.ReasonDirectoryMissing)
		require.Contains(t, w.want(v1.Ready).Status.Message, "the directory of the volume is missing")
		directory(w, v1.True, "Ready")
		require.Empty(t, w.want(v1.Ready).Status.Message)

		w.refuse("start", server, runtime.ErrPortTaken)
		w.change(on)
		cause := w.want(v1.Exit).Status.Message
		require.Contains(t, cause, "cannot start")
		directory(w, v1.False, v1.ReasonDirectoryMissing)
		require.Equal(t, cause, w.want(v1.Exit).Status.Message)
		directory(w, v1.True, "Ready")
		require.Equal(t, cause, w.want(v1.Exit).Status.Message)
		require.Len(t, reported(w), 4)
	})
}

// TestVolumeIsNotWritable requires that a user who cannot write the volume is reported once, and
// no more when it can.
func TestVolumeIsNotWritable(t *testing.T) {
	live(t, func(w *world) {
		reason := "it belongs to 0:0"
		w.rec.Own = func(volume string, user runtime.Account) (string, error) {
			require.Equal(t, "v", volume)
			require.Equal(t, runtime.Account{UID: 7, GID: 8}, user)
			return reason, nil
		}
		w.installed(func(s *v1.ContainerSpec) { s.User = "7:8" })
		condition := v1.FindCondition(w.get().Status.Conditions, v1.VolumeWritable)
		require.Equal(t, []string{v1.False, reason}, []string{condition.Status, condition.Message})
		require.Equal(t, []string{reason}, w.events(v1.EventMessage))
		reason = ""
		w.change(func(s *v1.ContainerSpec) { s.Hostname = "x" })
		require.Equal(t, v1.True, v1.FindCondition(w.get().Status.Conditions, v1.VolumeWritable).Status)
	})
}
