package container_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/container"
	"berth/runtime"
	"berth/store"
)

// limited gives the volume a limit of 1000 bytes. size sets its usage, which the
// container observes.
func (w *world) limited() (size func(bytes int64)) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
		return store.Volumes.Create(tx, "v", v1.VolumeSpec{SizeLimit: 1000})
	}))
	return func(bytes int64) {
		require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
			return store.Volumes.SetStatus(tx, "v", func(s *v1.VolumeStatus) { s.Size = bytes })
		}))
		time.Sleep(61 * time.Second)
	}
}

func TestVolumeOverLimitStopsRun(t *testing.T) {
	live(t, func(w *world) {
		size := w.limited()
		w.installed(func(s *v1.ContainerSpec) { s.Limits.Disk = 2000 })
		w.change(on)
		size(1001) // the smaller limit counts
		c := w.want(v1.Running)
		require.Equal(t, v1.True, v1.FindCondition(c.Status.Conditions, v1.DiskPressure).Status)
		time.Sleep(2 * time.Minute)
		require.Contains(t, w.want(v1.Exit).Status.Message, "starts again when there is space")
		w.change(on)
		time.Sleep(time.Hour)
		require.Contains(t, w.want(v1.Exit).Status.Message, "starts again when there is space")
		size(1000)
		require.Equal(t, v1.False, v1.FindCondition(w.want(v1.Running).Status.Conditions, v1.DiskPressure).Status)
	})
}

// TestPressureOfUnmeasuredVolume: the message names the cause.
func TestPressureOfUnmeasuredVolume(t *testing.T) {
	live(t, func(w *world) {
		size := w.limited()
		w.installed(nil)
		w.change(on)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Volumes.SetStatus(tx, "v", func(s *v1.VolumeStatus) {
				s.Conditions = v1.SetCondition(s.Conditions, v1.Condition{Type: v1.UsageMeasured, Status: v1.False, Message: "nested too deeply"}, tx.Now())
			})
		}))
		size(1001)
		require.Equal(t, "nested too deeply. A container that runs is stopped after 2m0s", w.want(v1.Running).Status.Message)
	})
}

// TestRunResumesWithFreeSpace: also if the space is free before the stopped run
// exits.
func TestRunResumesWithFreeSpace(t *testing.T) {
	live(t, func(w *world) {
		size := w.limited()
		w.installed(func(s *v1.ContainerSpec) { s.Stop.Timeout = v1.Duration(time.Hour) })
		w.change(on)
		w.engine.Outside.Deafen(server)
		size(1001)
		time.Sleep(2 * time.Minute)
		w.want(v1.Stopping)
		size(1000)
		w.engine.Outside.Exit(server, 0)
		w.want(v1.Running)
		require.Equal(t, []string{"running", "stopping", "exit", "starting", "running"}, w.phases()[3:])
	})
}

// rooted runs test with a world in which set sets the usage of every container outside
// its volume, until the container is removed. The limit is 100 MiB.
func rooted(t *testing.T, test func(w *world, set func(u v1.Usage))) {
	t.Helper()
	rootedBy(t, func(m container.RootMeter) container.RootMeter { return m }, test)
}

// rootedBy is rooted with another way to measure.
func rootedBy(t *testing.T, by func(container.RootMeter) container.RootMeter, test func(w *world, set func(u v1.Usage))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		wrote := map[string]v1.Usage{}
		w.rec.Roots = &container.Roots{Store: w.store, Log: w.rec.Log, Limit: func() int64 { return 100 << 20 }, Disk: func() int64 { return 1 },
			Measure: by(func(_ context.Context, n runtime.Name, _ runtime.Writable) (container.RootUsage, error) {
				mu.Lock()
				defer mu.Unlock()
				s := w.engine.Outside.State(n)
				if s.ContainerID == "" {
					return container.RootUsage{}, runtime.ErrNotFound
				}
				return container.RootUsage{ContainerID: s.ContainerID, Usage: wrote[s.ContainerID]}, nil
			})}
		defer w.run()()
		test(w, func(u v1.Usage) {
			mu.Lock()
			defer mu.Unlock()
			for _, n := range []runtime.Name{server, installer} {
				wrote[w.engine.Outside.State(n).ContainerID] = u
			}
		})
	})
}

// TestRootOverLimitStopsAtOnce: the container is removed with the files outside its
// volume, and started again with backoff.
func TestRootOverLimitStopsAtOnce(t *testing.T) {
	for name, u := range map[string]v1.Usage{"bytes": {Bytes: 101 << 20}, "files": {Files: v1.FilesLimit(100<<20) + 1}} {
		t.Run(name, func(t *testing.T) {
			rooted(t, func(w *world, set func(v1.Usage)) {
				w.installed(func(s *v1.ContainerSpec) { s.Stop.Timeout = v1.Duration(time.Hour) })
				w.change(on)
				w.want(v1.Running)
				w.engine.Outside.Deafen(server)
				before := w.engine.Outside.State(server).ContainerID
				set(u)
				time.Sleep(61 * time.Second)
				c := w.want(v1.Stopping)
				require.Equal(t, v1.ReasonRootOverLimit, v1.FindCondition(c.Status.Conditions, v1.DiskPressure).Reason)
				time.Sleep(31 * time.Second)
				c = w.want(v1.Exit)
				after := w.engine.Outside.State(server).ContainerID
				require.NotEqual(t, before, after)
				require.Equal(t, after, c.Status.ContainerID, "it is shown while the container waits")
				require.Equal(t, v1.False, v1.FindCondition(c.Status.Conditions, v1.DiskPressure).Status)
				require.NotNil(t, c.Status.NextRetryAt)
				time.Sleep(10 * time.Second)
				w.want(v1.Running)
				set(u)
				time.Sleep(19 * time.Second) // until the next measurement
				require.Equal(t, 2, w.want(v1.Exit).Status.Crashes, "the next wait is longer")
			})
		})
	}
}

// TestRootCountsForVolumeLimit: the volume alone is within its limit.
func TestRootCountsForVolumeLimit(t *testing.T) {
	rooted(t, func(w *world, set func(v1.Usage)) {
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Volumes.Create(tx, "v", v1.VolumeSpec{SizeLimit: 50 << 20})
		}))
		w.installed(nil)
		w.change(on)
		set(v1.Usage{Bytes: 1<<20 + 50<<20})
		time.Sleep(61 * time.Second)
		w.want(v1.Running)
		set(v1.Usage{Bytes: 1<<20 + 50<<20 + 2<<20})
		time.Sleep(61 * time.Second)
		c := w.want(v1.Running)
		require.Equal(t, v1.ReasonOverLimit, v1.FindCondition(c.Status.Conditions, v1.DiskPressure).Reason)
		before := w.engine.Outside.State(server).ContainerID
		time.Sleep(2 * time.Minute)
		w.want(v1.Running)
		require.NotEqual(t, before, w.engine.Outside.State(server).ContainerID, "without what the one before it wrote")
		require.Contains(t, w.phases(), "exit")
	})
}

func TestInstallerFillingRootFails(t *testing.T) {
	rooted(t, func(w *world, set func(v1.Usage)) {
		w.create(nil)
		set(v1.Usage{Bytes: 101 << 20})
		time.Sleep(61 * time.Second)
		c := w.want(v1.Failed)
		require.Equal(t, v1.DiskPressure, v1.FindCondition(c.Status.Conditions, v1.Installed).Reason)
		require.Empty(t, w.engine.Outside.State(installer).ContainerID)
		require.False(t, v1.FindCondition(c.Status.Conditions, v1.DiskPressure).Status == v1.True, "it went with the installer")
	})
}

// TestInstallerFillingVolumeFails: it is killed after the grace period.
func TestInstallerFillingVolumeFails(t *testing.T) {
	live(t, func(w *world) {
		size := w.limited()
		w.create(nil)
		size(1001)
		time.Sleep(50 * time.Second)
		w.want(v1.Installing)
		time.Sleep(90 * time.Second)
		c := w.want(v1.Failed)
		require.Equal(t, v1.DiskPressure, v1.FindCondition(c.Status.Conditions, v1.Installed).Reason)
	})
}

func TestTooManyFilesArePressure(t *testing.T) {
	live(t, func(w *world) {
		w.limited()
		w.installed(nil)
		w.change(on)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Volumes.SetStatus(tx, "v", func(s *v1.VolumeStatus) { s.Size, s.Files = 10, v1.FilesLimit(1000)+1 })
		}))
		time.Sleep(61 * time.Second)
		require.Equal(t, v1.True, v1.FindCondition(w.want(v1.Running).Status.Conditions, v1.DiskPressure).Status)
	})
}

// TestRunawayIsKilled: a container that goes on to write during its stop is killed.
func TestRunawayIsKilled(t *testing.T) {
	rooted(t, func(w *world, set func(v1.Usage)) {
		w.installed(func(s *v1.ContainerSpec) { s.Stop.Timeout = v1.Duration(time.Hour) })
		w.change(on)
		w.engine.Outside.Deafen(server)
		set(v1.Usage{Bytes: 126 << 20})
		time.Sleep(61 * time.Second)
		c := w.want(v1.Exit)
		require.Equal(t, 1, c.Status.Crashes)
		require.NotNil(t, c.Status.NextRetryAt)
	})
}

// TestUnmeasurableRootIsOverLimit: a layer whose measurement ends with its timeout counts as
// over the limit. One that is merely slow does not, nor does one whose engine does not answer.
func TestUnmeasurableRootIsOverLimit(t *testing.T) {
	for name, c := range map[string]struct {
		takes    time.Duration
		answers  bool
		wantStop bool
	}{"never ends": {time.Hour, true, true}, "slow": {29 * time.Second, true, false}, "engine hangs": {time.Hour, false, false}} {
		t.Run(name, func(t *testing.T) {
			var hostile atomic.Pointer[string]
			slowly := func(measure container.RootMeter) container.RootMeter {
				return func(ctx context.Context, n runtime.Name, places runtime.Writable) (container.RootUsage, error) {
					u, err := measure(ctx, n, places)
					if id := hostile.Load(); id == nil || *id != u.ContainerID {
						return u, err
					}
					walk := time.NewTimer(c.takes)
					defer walk.Stop()
					select {
					case <-walk.C:
						return u, err
					case <-ctx.Done():
					}
					if !c.answers {
						u.ContainerID = ""
					}
					return u, ctx.Err()
				}
			}
			rootedBy(t, slowly, func(w *world, _ func(v1.Usage)) {
				w.installed(nil)
				w.change(on)
				w.want(v1.Running)
				own := w.engine.Outside.State(server).ContainerID
				hostile.Store(&own)
				time.Sleep(3 * time.Minute)
				require.Equal(t, c.wantStop, w.engine.Outside.State(server).ContainerID != own, "it runs without a limit")
				require.Equal(t, c.wantStop, strings.Contains(strings.Join(w.events(v1.EventMessage), "\n"), "could not be measured"))
			})
		})
	}
}
