package container_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// others makes 24 containers, on which an operation of the engine takes a time.
func others(w *world, spec v1.ContainerSpec, takes map[string]time.Duration) (ids []string) {
	w.engine.Fail(func(op string, n runtime.Name) error {
		if n.ID != "mc" {
			time.Sleep(takes[op])
		}
		return nil
	})
	for i := range 24 {
		id := fmt.Sprintf("other%d", i)
		ids = append(ids, id)
		spec.VolumeID = id
		require.NoError(w.t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Create(tx, id, spec) }))
	}
	return ids
}

// crowd is 24 containers, of which four are being started, a minute each.
func crowd(w *world) (ids []string) {
	spec := v1.ContainerSpec{Image: "i", InstallGeneration: 1, Power: v1.PowerOff}
	ids = others(w, spec, map[string]time.Duration{"start": time.Minute})
	time.Sleep(time.Second)
	for _, id := range ids {
		w.wishOf(id, on)
	}
	return ids
}

func TestAKillWaitsForNoOtherContainersStart(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.wish(on)
		ids := crowd(w)
		began := time.Now()
		w.wish(kill)
		w.want(v1.Exit)
		require.Less(t, time.Since(began), time.Second)
		time.Sleep(10 * time.Minute)
		for _, id := range ids {
			require.Equal(t, v1.Running, w.getOf(id).Status.Phase)
		}
	})
}

func TestWhoDoesNotStartAnyMoreLeavesItsTurnToTheNext(t *testing.T) {
	live(t, func(w *world) {
		want := map[string]v1.Phase{}
		for i, id := range crowd(w) {
			want[id] = v1.Running
			if i%2 == 0 && w.getOf(id).Status.Phase == v1.Ready {
				w.wishOf(id, func(s *v1.ContainerSpec) { s.Power = v1.PowerOff })
				want[id] = v1.Ready
			}
		}
		time.Sleep(10 * time.Minute)
		for id, phase := range want {
			require.Equal(t, phase, w.getOf(id).Status.Phase)
		}
	})
}

func TestTheFirstOfManyRunsBeforeTheLastIsMade(t *testing.T) {
	live(t, func(w *world) {
		spec := v1.ContainerSpec{Image: "i", InstallGeneration: 1, RunGeneration: 1, Power: v1.PowerOn}
		ids := others(w, spec, map[string]time.Duration{"create": time.Second, "start": time.Second})
		time.Sleep(4500 * time.Millisecond) // four at once: 24 are made in six seconds
		run := 0
		for _, id := range ids {
			if w.getOf(id).Status.Phase == v1.Running {
				run++
			}
		}
		require.GreaterOrEqual(t, run, 4)
		time.Sleep(20 * time.Second)
		for _, id := range ids {
			require.Equal(t, v1.Running, w.getOf(id).Status.Phase)
		}
	})
}

func TestAStartWaitsForNoneThatIsOnlyMade(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		others(w, v1.ContainerSpec{Image: "i", InstallGeneration: 1, Power: v1.PowerOff}, map[string]time.Duration{"create": time.Minute})
		time.Sleep(time.Second) // four are being made, twenty wait for it
		w.wish(on)
		time.Sleep(time.Minute)
		w.want(v1.Running)
	})
}

func TestWhatWasMadeStartsWithTheSameSlot(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Fail(func(op string, _ runtime.Name) error {
			if op == "create" {
				time.Sleep(30 * time.Second)
			}
			return nil
		})
		w.create(func(s *v1.ContainerSpec) { s.InstallScript, s.Power, s.RunGeneration = "", v1.PowerOn, 1 })
		others(w, v1.ContainerSpec{Image: "i", InstallGeneration: 1, Power: v1.PowerOff}, map[string]time.Duration{"create": time.Minute})
		time.Sleep(31 * time.Second) // no other slot is free yet, and twenty wait for one
		w.want(v1.Running)
	})
}

func TestWhatTheEngineTookDownRunsAgainAlsoAfterACleanEnd(t *testing.T) {
	for _, mode := range []string{v1.RestartNever, v1.RestartOnFailure} {
		live(t, func(w *world) {
			w.installed(func(s *v1.ContainerSpec) { s.RestartPolicy.Mode = mode })
			w.wish(on)
			w.engine.Host().Down()
			time.Sleep(5 * time.Second)
			w.engine.Exit(server, 0)
			time.Sleep(5 * time.Second)
			w.engine.Host().Boot()
			time.Sleep(10 * time.Second)
			w.want(v1.Running)
			require.Equal(t, []string{"running", "exit", "starting", "running"}, w.told()[3:])
		})
	}
}

func TestAnInstallationThatTheEngineTookDownBeginsAnew(t *testing.T) {
	live(t, func(w *world) {
		w.create(nil)
		w.engine.Host().Down()
		time.Sleep(5 * time.Second)
		w.engine.Exit(installer, 137)
		w.engine.Host().Boot()
		time.Sleep(10 * time.Second)
		w.want(v1.Installing)
		require.True(t, w.engine.State(installer).Running)
		w.engine.Exit(installer, 0)
		w.want(v1.Ready)
	})
}

func TestAFailingPullBacksOff(t *testing.T) {
	live(t, func(w *world) {
		w.engine.RefusePull("far", errors.New("connection refused"))
		w.create(func(s *v1.ContainerSpec) { s.Image = "far" })
		time.Sleep(time.Hour)
		n := w.count("pull", runtime.Name{ID: "far"})
		require.Less(t, n, 25)
		require.Greater(t, n, 10)
		require.Contains(t, w.want(v1.Installing).Status.Message, "connection refused; tried again at")
	})
}

func TestAnImageThatWasPrunedIsNotAskedForAllTheTime(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.engine.RemoveImage("i")
		w.engine.RefusePull("i", runtime.ErrImageNotFound)
		w.engine.Vanish(server)
		time.Sleep(time.Hour)
		require.Less(t, w.count("pull", runtime.Name{ID: "i"}), 80) // the resync asks each minute
		w.engine.AddImage("i")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.NotEmpty(t, w.engine.State(server).ContainerID)
	})
}

func TestAPullsEndIsNotToldToALaterContainerOfTheSameID(t *testing.T) {
	live(t, func(w *world) {
		release := w.engine.HoldPull("late")
		w.engine.RefusePull("late", runtime.ErrImageNotFound)
		w.create(func(s *v1.ContainerSpec) { s.Image = "late" })
		require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
		require.True(t, w.gone())
		release()
		time.Sleep(time.Hour)
		w.engine.RefusePull("late", nil)
		w.create(func(s *v1.ContainerSpec) { s.Image = "late" })
		time.Sleep(time.Minute)
		w.engine.Exit(installer, 0)
		w.want(v1.Ready)
	})
}

func TestALimitThatTheEngineRefusesIsToldOnceAndBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse("update", server, runtime.ErrInvalid)
		defer w.run()()
		w.installed(func(s *v1.ContainerSpec) { s.Limits.Memory = 64 << 20 })
		w.wish(func(s *v1.ContainerSpec) { s.Limits.Memory = 128 << 20 })
		w.wish(on)
		c := w.want(v1.Running)
		require.Equal(t, v1.False, v1.FindCondition(c.Status.Conditions, v1.LimitsApplied).Status)
		time.Sleep(time.Hour)
		require.LessOrEqual(t, w.count("update", server), 2, "once for each spec")
	})
}
