package container_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/controller/container"
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
	events, err := store.ReadEvents(w.store.Read(), 0, 1000)
	for _, e := range events {
		if e.Event == v1.EventMessage && e.Reason != "" {
			list = append(list, e.Container+" "+e.Reason+": "+e.Data)
		}
	}
	require.NoError(w.t, err)
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

// TestVolumeIsGivenBeforeEachStart requires that the volume is given to the account of the installer and of the
// server before each of their starts, and never otherwise.
func TestVolumeIsGivenBeforeEachStart(t *testing.T) {
	live(t, func(w *world) {
		var given []container.Accounts
		w.rec.Volumes.Own = func(_ context.Context, volume string, to container.Accounts) (string, error) {
			require.Equal(t, "v", volume)
			require.Zero(t, w.count("start", server), "before the start")
			given = append(given, to)
			return "", nil
		}
		account := func(uid, gid int, others ...int) container.Accounts {
			return container.Accounts{Account: runtime.Account{UID: uid, GID: gid}, Others: others}
		}
		w.installed(func(s *v1.ContainerSpec) { s.User, s.InstallUser = "7:8", "3:4" })
		require.Equal(t, []container.Accounts{account(3, 4)}, given)
		w.change(on)
		w.want(v1.Running)
		require.Equal(t, []container.Accounts{account(3, 4), account(7, 8)}, given)
		require.Empty(t, v1.FindCondition(w.get().Status.Conditions, v1.VolumeWritable).Status, "it was never false")

		w.rec.Volumes.Own = func(_ context.Context, _ string, to container.Accounts) (string, error) {
			given = append(given, to)
			return "", nil
		}
		given = nil
		w.change(off)
		w.want(v1.Exit)
		w.change(func(s *v1.ContainerSpec) { s.User = "9:9" })
		require.Empty(t, given, "a creation gives nothing")
		w.change(on)
		w.want(v1.Running)
		w.engine.Outside.Exit(server, 1)
		time.Sleep(time.Minute)
		w.want(v1.Running)
		require.Equal(t, []container.Accounts{account(9, 9), account(9, 9)}, given, "also after a crash")

		other := v1.ContainerSpec{Image: "i", VolumeID: "v", User: "5:5", Power: v1.PowerOn, RunGeneration: 1, InstallGeneration: 1}
		require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Create(tx, "sidecar", other) }))
		synctest.Wait()
		require.Equal(t, account(5, 5, 9), given[2], "the files of the other server stay its own")
	})
}

// TestVolumeIsNotWritable requires that a user who cannot write the volume is reported once, starts all the
// same, and is reported no more when it can.
func TestVolumeIsNotWritable(t *testing.T) {
	live(t, func(w *world) {
		reason, failure := "it belongs to 0:0", error(nil)
		w.rec.Volumes.Own = func(context.Context, string, container.Accounts) (string, error) { return reason, failure }
		w.installed(func(s *v1.ContainerSpec) { s.User = "7:8" })
		restart := func() v1.Condition {
			w.change(off)
			w.change(on)
			return v1.FindCondition(w.want(v1.Running).Status.Conditions, v1.VolumeWritable)
		}
		condition := restart()
		require.Equal(t, []string{v1.False, reason}, []string{condition.Status, condition.Message})
		require.Equal(t, []string{reason}, w.events(v1.EventMessage), "of the installer and of the server: once")
		restart()
		require.Len(t, w.events(v1.EventMessage), 1)
		reason, failure = "", errors.New("input/output error")
		require.Contains(t, restart().Message, "the daemon's log has the error")
		failure = nil
		require.Equal(t, v1.True, restart().Status)
	})
}

// TestLongWalksDelayNoOthers requires that the walks of many large volumes do not keep others from starting, and
// that the walk for a start that is no longer requested ends.
func TestLongWalksDelayNoOthers(t *testing.T) {
	live(t, func(w *world) {
		var walks, cancelled atomic.Int64
		w.rec.Volumes.Own = func(ctx context.Context, volume string, _ container.Accounts) (string, error) {
			if volume == "v" {
				return "", nil
			}
			walks.Add(1)
			<-ctx.Done()
			cancelled.Add(1)
			return "", ctx.Err()
		}
		w.installed(nil)
		id := func(i int) string { return fmt.Sprint("large-", i) }
		for i := range 10 {
			large := v1.ContainerSpec{Image: "i", VolumeID: id(i), User: "7:8", Power: v1.PowerOn, RunGeneration: 1, InstallGeneration: 1}
			require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Create(tx, id(i), large) }))
		}
		synctest.Wait()
		w.change(on)
		time.Sleep(time.Minute)
		w.want(v1.Running)
		require.EqualValues(t, 10, walks.Load())
		require.Equal(t, v1.Starting, w.getOf(id(0)).Status.Phase)
		w.changeOf(id(0), off)
		require.Equal(t, v1.Exit, w.getOf(id(0)).Status.Phase)
		w.changeOf(id(0), on)
		time.Sleep(time.Minute)
		require.Equal(t, []int64{11, 1}, []int64{walks.Load(), cancelled.Load()})
	})
}
