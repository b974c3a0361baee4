package container_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

func TestLife(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		w.want(v1.Installing)
		w.engine.Outside.Exit(installer, 0)
		c := w.want(v1.Ready)
		require.NotEmpty(t, c.Status.ContainerID, "the container exists before the first start")
		require.False(t, w.engine.Outside.State(server).Running)
		require.Empty(t, w.engine.Outside.State(installer).ContainerID, "the installer is cleaned up")

		w.console.held.Store(true)
		w.change(on)
		w.want(v1.Starting)
		w.console.held.Store(false)
		w.change(func(s *v1.ContainerSpec) { s.Labels = nil; s.StartPattern = "x" })
		w.want(v1.Running)

		w.change(off) // the fake engine's container exits on a signal
		c = w.want(v1.Exit)
		require.Equal(t, []string{"SIGTERM"}, w.engine.Outside.Signals(server))
		require.NotNil(t, c.Status.ExitCode)
		require.Equal(t, c.Meta.Generation, c.Status.ObservedGeneration)
		require.Equal(t, []string{"installing", "ready", "starting", "running", "stopping", "exit"}, w.phases())
		require.Equal(t, 1, w.count("start", server))
	})
}

func TestFailedInstallAndReinstall(t *testing.T) {
	live(t, func(w *world) {
		w.create(on) // the request is kept
		w.engine.Outside.Exit(installer, 7)
		c := w.want(v1.Failed)
		require.Equal(t, 7, *c.Status.ExitCode)
		require.Equal(t, v1.Failed, v1.InstallStateOf(c))
		require.Contains(t, c.Status.Message, "exit code 7")
		require.Zero(t, w.count("start", server))

		w.change(func(s *v1.ContainerSpec) { s.InstallGeneration++ })
		w.want(v1.Installing)
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Running)
		require.Equal(t, []string{"installing", "failed", "installing", "ready", "starting", "running"}, w.phases())
	})
}

func TestInstallTimeout(t *testing.T) {
	live(t, func(w *world) {
		w.create(func(s *v1.ContainerSpec) { s.InstallTimeout = v1.Duration(time.Minute) })
		time.Sleep(59 * time.Second)
		w.want(v1.Installing)
		time.Sleep(2 * time.Second)
		require.Contains(t, w.want(v1.Failed).Status.Message, "longer than 1m0s")
	})
}

func TestMissingImageFailsForGood(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.RefusePull("gone", runtime.ErrImageNotFound)
		w.create(func(s *v1.ContainerSpec) { s.Image = "gone" })
		c := w.want(v1.Failed)
		require.Equal(t, v1.ReasonImageNotFound, v1.FindCondition(c.Status.Conditions, v1.ImageAvailable).Reason)

		w.engine.Outside.RefusePull("far", errors.New("no route to registry"))
		w.change(func(s *v1.ContainerSpec) { s.Image = "far"; s.InstallGeneration++ })
		require.Contains(t, w.want(v1.Installing).Status.Message, "no route")
		w.engine.Outside.RefusePull("far", nil)
		time.Sleep(time.Hour)
		w.want(v1.Installing)
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Ready)
	})
}

func TestOnePullServesMany(t *testing.T) {
	live(t, func(w *world) {
		release := w.engine.Outside.HoldPull("slow")
		for _, id := range []string{"a", "b"} {
			require.NoError(t, w.store.Update(func(tx *store.Tx) error {
				return store.Containers.Create(tx, id, v1.ContainerSpec{Image: "slow", VolumeID: id, InstallGeneration: 1, Power: v1.PowerOff})
			}))
		}
		w.installed(nil)
		w.change(on)
		w.want(v1.Running)
		release()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, w.count("pull", runtime.Name{ID: "slow"}))
		for _, id := range []string{"a", "b"} {
			require.NotEmpty(t, w.engine.Outside.State(runtime.Name{ID: id, Role: runtime.Server}).ContainerID)
		}
	})
}

func TestOneInstallPerVolume(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		other := runtime.Name{ID: "other", Role: runtime.Install}
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Containers.Create(tx, "other", v1.ContainerSpec{Image: "i", VolumeID: "v", InstallScript: new("x"), InstallGeneration: 1, Power: v1.PowerOff})
		}))
		time.Sleep(time.Minute)
		require.False(t, w.engine.Outside.State(other).Running)
		w.engine.Outside.Exit(installer, 0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.True(t, w.engine.Outside.State(other).Running)
	})
}

// TestVolumeClaimedOncePulled: an installation without its image does not block the
// volume, and fails while another one uses it.
func TestVolumeClaimedOncePulled(t *testing.T) {
	live(t, func(w *world) {
		release := w.engine.Outside.HoldPull("slow")
		w.engine.Outside.RefusePull("nowhere", runtime.ErrImageNotFound)
		create := func(id, image, installImage string) {
			require.NoError(t, w.store.Update(func(tx *store.Tx) error {
				return store.Containers.Create(tx, id, v1.ContainerSpec{Image: image, InstallImage: installImage, VolumeID: "v",
					InstallScript: new("x"), InstallGeneration: 1, Power: v1.PowerOff})
			}))
		}
		create("pulls", "slow", "")
		create("pulls-installer", "i", "slow")
		synctest.Wait()
		w.create(nil)
		require.True(t, w.engine.Outside.State(installer).Running)
		create("missing", "nowhere", "")
		create("waits", "i", "")
		synctest.Wait()
		require.Equal(t, v1.ReasonImageNotFound, v1.FindCondition(w.getOf("missing").Status.Conditions, v1.ImageAvailable).Reason)
		waits := w.getOf("waits").Status
		require.Contains(t, waits.Message, "installation of container mc")
		require.Equal(t, v1.True, v1.FindCondition(waits.Conditions, v1.ImageAvailable).Status)
		release()
		w.engine.Outside.Exit(installer, 0)
		for range 3 { // one after the other
			time.Sleep(5 * time.Second)
			synctest.Wait()
			running := 0
			for _, id := range []string{"waits", "pulls", "pulls-installer"} {
				n := runtime.Name{ID: id, Role: runtime.Install}
				if w.engine.Outside.State(n).Running {
					running++
					w.engine.Outside.Exit(n, 0)
				}
			}
			require.Equal(t, 1, running)
		}
		time.Sleep(5 * time.Second)
		for _, id := range []string{"waits", "pulls", "pulls-installer"} {
			require.Equal(t, v1.Ready, w.getOf(id).Status.Phase, id)
		}
	})
}

func TestStopTimeoutEndsInKill(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Deafen(server)
		w.change(func(s *v1.ContainerSpec) { off(s); s.Stop.Timeout = v1.Duration(20 * time.Second) })
		time.Sleep(19 * time.Second)
		w.want(v1.Stopping)
		time.Sleep(2 * time.Second)
		w.want(v1.Exit)
		require.Equal(t, 1, w.count("kill", server))
		require.Equal(t, 1, w.count("signal", server))
		c := w.get()
		require.Equal(t, "did not exit within 20s and was killed", c.Status.Message)
		started := v1.FindCondition(c.Status.Conditions, v1.Started)
		require.Equal(t, []string{v1.ReasonKilled, c.Status.Message}, []string{started.Reason, started.Message})
	})
}

func TestStopByCommand(t *testing.T) {
	live(t, func(w *world) {
		w.engine.OnInput = func(n runtime.Name, data []byte) {
			if string(data) == "save-and-quit" {
				w.engine.Outside.Exit(n, 0)
			}
		}
		w.installed(func(s *v1.ContainerSpec) { s.Stop.Command = "save-and-quit" })
		w.change(on)
		w.change(off)
		w.want(v1.Exit)
		require.Empty(t, w.engine.Outside.Signals(server))
	})
}

func TestKillOverridesStop(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Deafen(server)
		w.change(off)
		w.want(v1.Stopping)
		w.change(kill)
		c := w.want(v1.Exit)
		require.Equal(t, v1.ReasonKilled, v1.FindCondition(c.Status.Conditions, v1.Started).Reason)
		require.Empty(t, c.Status.Message, "nothing has failed")
	})
}

func TestKillThenStart(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { kill(s); on(s); return nil })
		}))
		c := w.want(v1.Running)
		require.EqualValues(t, 2, c.Status.ObservedRun)
		require.Equal(t, 1, w.count("kill", server))
		require.Equal(t, 2, w.count("start", server))
		require.Equal(t, []string{"installing", "ready", "starting", "running", "exit", "starting", "running"}, w.phases())
	})
}

func TestDelete(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
		require.True(t, w.gone())
		require.Empty(t, w.engine.Outside.State(server).ContainerID)
		require.Equal(t, "deleting", w.phases()[len(w.phases())-1])
	})
}

// TestMadeAgainKeepsItsListeners: a container that was made again as soon as the one before was purged has listeners,
// whom the second forgetting of the console would end. Rounds go on until one is made that early.
func TestMadeAgainKeepsItsListeners(t *testing.T) {
	live(t, func(w *world) {
		var forgotten atomic.Int32
		w.console.forgot = func() { forgotten.Add(1) }
		for range 1000 {
			w.installed(nil)
			forgotten.Store(0)
			require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
			spec := v1.ContainerSpec{Image: "i", VolumeID: "v", Power: v1.PowerOff}
			for w.store.Update(func(tx *store.Tx) error { return store.Containers.Create(tx, "mc", spec) }) != nil {
			}
			synctest.Wait()
			early := forgotten.Load() == 1
			require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
			require.True(t, w.gone())
			if early {
				return
			}
		}
		t.Fatal("each console was forgotten twice")
	})
}

func TestReinstallStopsAndRecreates(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		first := w.engine.Outside.State(server).ContainerID
		w.change(func(s *v1.ContainerSpec) { s.InstallGeneration++; off(s) })
		w.want(v1.Installing)
		w.engine.Outside.Exit(installer, 0)
		c := w.want(v1.Ready)
		require.NotEqual(t, first, c.Status.ContainerID)
		require.Equal(t, []string{"installing", "ready", "starting", "running", "stopping", "exit", "installing", "ready"}, w.phases())
	})
}

func TestLimitsUpdateAndRebindRecreates(t *testing.T) {
	live(t, func(w *world) {
		w.installed(func(s *v1.ContainerSpec) { s.Limits.Memory = 64 << 20 })
		w.change(on)
		first := w.engine.Outside.State(server)
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 128 << 20 })
		require.Equal(t, int64(128<<20), w.engine.Outside.State(server).Live.Memory)
		require.Equal(t, first.StartedAt, w.engine.Outside.State(server).StartedAt, "not restarted")

		w.change(func(s *v1.ContainerSpec) {
			s.Ports = []v1.Port{{IP: "127.0.0.1", Port: 1, Protocol: "tcp"}}
			s.RunGeneration++
		})
		w.want(v1.Running)
		require.NotEqual(t, first.ContainerID, w.engine.Outside.State(server).ContainerID)
		require.Equal(t, 1, w.engine.Outside.Spec(server).Ports[0].ContainerPort)
	})
}

// A client that subscribes while its container is purged must not wait for ever.
func TestConsoleForgottenBeforeAndAfterPurge(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		var left []int
		w.console.forgot = func() {
			left = append(left, len(store.Containers.IDs(w.store.Read())))
		}
		require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
		require.True(t, w.gone())
		synctest.Wait()
		require.Equal(t, []int{1, 0}, left)
	})
}

// TestSpecNotObservedBeforeExitIsRecorded: the phase is still that of the exited
// run, and must not look like the result of the newer request.
func TestSpecNotObservedBeforeExitIsRecorded(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.want(v1.Running)
		w.console.unread.Store(true)
		w.change(kill)
		w.change(on)
		c := w.want(v1.Running)
		require.False(t, w.engine.Outside.State(server).Running)
		require.Less(t, c.Status.ObservedGeneration, c.Meta.Generation)
		time.Sleep(time.Minute)
		c = w.want(v1.Running)
		require.True(t, w.engine.Outside.State(server).Running)
		require.Equal(t, c.Meta.Generation, c.Status.ObservedGeneration)
	})
}
