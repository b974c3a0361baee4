package container_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/container"
	"berth/runtime"
	"berth/runtime/fake"
	"berth/store"
)

// allowedTries returns how often a key may fail within d with the backoff of
// world.run: 500 ms doubling, with 20 % of jitter.
func allowedTries(d time.Duration) (tries int) {
	wait := 400 * time.Millisecond
	for at := time.Duration(0); at < d; at += wait << (tries - 1) {
		tries++
	}
	return tries
}

// TestWaitingForPermitKeepsBackoff: a container without a free permit has neither
// failed nor succeeded.
func TestWaitingForPermitKeepsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const containers, d = 50, 55 * time.Second // less than a resync
		w := newWorld(t)
		w.engine.Outside.Fail(func(op string, _ runtime.Name) error {
			if op != "create" {
				return nil
			}
			time.Sleep(200 * time.Millisecond)
			return runtime.ErrUnavailable
		})
		defer w.run()()
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			for i := range containers {
				spec := v1.ContainerSpec{Image: "i", VolumeID: fmt.Sprint("v", i), InstallScript: new("true"), InstallGeneration: 1, Power: v1.PowerOff}
				if err := store.Containers.Create(tx, fmt.Sprint("c", i), spec); err != nil {
					return err
				}
			}
			return nil
		}))
		time.Sleep(d)
		most := 0
		for i := range containers {
			n := w.count("create", runtime.Name{ID: fmt.Sprint("c", i), Role: runtime.Install})
			require.GreaterOrEqual(t, n, 4, "container %d waits in vain", i)
			most = max(most, n)
		}
		require.LessOrEqual(t, most, allowedTries(d), "creates of one container in %s", d)
	})
}

// TestPulledImageMissingIsFailure: the engine reports a pull as successful, and the
// image as missing. At most three creates belong to one pull.
func TestPulledImageMissingIsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 55 * time.Second
		w := newWorld(t)
		w.refuse("create", installer, runtime.ErrImageNotFound)
		defer w.run()()
		w.create(nil)
		time.Sleep(d)
		require.LessOrEqual(t, w.count("create", installer), 3*allowedTries(d))
		require.Contains(t, w.want(v1.Installing).Status.Message, "tries again")
	})
}

// others creates 24 containers, for which an operation of the engine takes the
// given time.
func others(w *world, spec v1.ContainerSpec, takes map[string]time.Duration) (ids []string) {
	w.engine.Outside.Fail(func(op string, n runtime.Name) error {
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

// crowd creates 24 containers and requests their starts. Four at a time are being
// started, a minute each.
func crowd(w *world) (ids []string) {
	spec := v1.ContainerSpec{Image: "i", InstallGeneration: 1, Power: v1.PowerOff}
	ids = others(w, spec, map[string]time.Duration{"start": time.Minute})
	time.Sleep(time.Second)
	for _, id := range ids {
		w.changeOf(id, on)
	}
	return ids
}

func TestKillDoesNotWaitForStarts(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		ids := crowd(w)
		began := time.Now()
		w.change(kill)
		w.want(v1.Exit)
		require.Less(t, time.Since(began), time.Second)
		time.Sleep(10 * time.Minute)
		for _, id := range ids {
			require.Equal(t, v1.Running, w.getOf(id).Status.Phase)
		}
	})
}

func TestCancelledStartReleasesPermit(t *testing.T) {
	live(t, func(w *world) {
		want := map[string]v1.Phase{}
		for i, id := range crowd(w) {
			want[id] = v1.Running
			if i%2 == 0 && w.getOf(id).Status.Phase == v1.Ready {
				w.changeOf(id, func(s *v1.ContainerSpec) { s.Power = v1.PowerOff })
				want[id] = v1.Ready
			}
		}
		time.Sleep(10 * time.Minute)
		for id, phase := range want {
			require.Equal(t, phase, w.getOf(id).Status.Phase)
		}
	})
}

func TestFirstRunsBeforeLastIsCreated(t *testing.T) {
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

func TestStartPrecedesCreations(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		others(w, v1.ContainerSpec{Image: "i", InstallGeneration: 1, Power: v1.PowerOff}, map[string]time.Duration{"create": time.Minute})
		time.Sleep(time.Second) // four are being created, twenty wait for a permit
		w.change(on)
		time.Sleep(time.Minute)
		w.want(v1.Running)
	})
}

func TestStartOfACreatedContainerComesFirst(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.Fail(func(op string, _ runtime.Name) error {
			if op == "create" {
				time.Sleep(30 * time.Second)
			}
			return nil
		})
		w.create(func(s *v1.ContainerSpec) { s.InstallScript, s.Power, s.RunGeneration = nil, v1.PowerOn, 1 })
		others(w, v1.ContainerSpec{Image: "i", InstallGeneration: 1, Power: v1.PowerOff}, map[string]time.Duration{"create": time.Minute})
		time.Sleep(31 * time.Second) // its volume is prepared without a permit, and twenty others wait for one
		w.want(v1.Starting)
		time.Sleep(30 * time.Second) // the first that is free is its own
		w.want(v1.Running)
	})
}

// idle is an engine whose kills succeed and do nothing.
type idle struct {
	*fake.Engine
	kills atomic.Int64
}

func (e *idle) Kill(context.Context, runtime.Name) error { e.kills.Add(1); return nil }

// TestStepsWithoutProgressEnd: a step that succeeds and changes nothing is retried with backoff.
func TestStepsWithoutProgressEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(nil)
		w.change(on)
		w.want(v1.Running)
		stop()
		engine := &idle{Engine: w.engine}
		w.rec.Engine = engine
		w.change(kill)
		_, err := w.rec.Reconcile(t.Context(), "mc")
		require.ErrorContains(t, err, "no progress in 30 steps")
		require.EqualValues(t, 30, engine.kills.Load())
		stop = w.run()
		time.Sleep(50 * time.Second)
		require.Less(t, engine.kills.Load(), int64(30*12), "with backoff")
		stop()
	})
}

// TestWaitForAPullKeepsNoPermit: a container that waited for a permit and then waits for its image
// leaves the permit to the next one.
func TestWaitForAPullKeepsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rec.Semaphore = container.NewSemaphore(1)
		require.True(t, w.rec.Semaphore.Take("another"))
		w.create(nil)
		res, err := w.rec.Reconcile(t.Context(), "mc")
		require.NoError(t, err)
		require.True(t, res.Waiting, "for the permit")
		w.change(func(s *v1.ContainerSpec) { s.Image, s.InstallGeneration = "far", 2 })
		_, err = w.rec.Reconcile(t.Context(), "mc")
		require.NoError(t, err)
		w.rec.Semaphore.Release()
		require.True(t, w.rec.Semaphore.Take("third"))
	})
}
