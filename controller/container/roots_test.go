package container_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/container"
	"berth/runtime"
	"berth/store"
)

// TestRootsAreMeasuredEachMinute: one after the other. A measurement that takes too long
// delays the others by its timeout.
func TestRootsAreMeasuredEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		for _, id := range []string{"a", "b", "never", "slow"} {
			require.NoError(t, s.Update(func(tx *store.Tx) error {
				if err := store.Containers.Create(tx, id, v1.ContainerSpec{VolumeID: "v"}); err != nil {
					return err
				}
				return store.Containers.SetStatus(tx, id, func(c *v1.ContainerStatus) { c.Phase = v1.Running })
			}))
		}
		takes, done := map[string]time.Duration{"never": time.Hour, "slow": 20 * time.Second}, map[string]int64{}
		measure := func(ctx context.Context, n runtime.Name, _ runtime.Writable) (container.RootUsage, error) {
			took := time.NewTimer(takes[n.ID])
			defer took.Stop()
			select {
			case <-took.C:
			case <-ctx.Done():
				return container.RootUsage{}, ctx.Err()
			}
			done[n.ID]++
			return container.RootUsage{ContainerID: n.ID, Usage: v1.Usage{Bytes: done[n.ID] << 30}}, nil
		}
		r := &container.Roots{Store: s, Measure: measure, Limit: func() int64 { return 0 }, Disk: func() int64 { return 1 }, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		named := map[string]int64{}
		var source sync.WaitGroup
		source.Go(func() { _ = r.Source()(ctx, func(id string) { named[id]++ }) })
		time.Sleep(10*time.Minute - time.Second)
		cancel()
		source.Wait()
		require.Equal(t, map[string]int64{"a": 10, "b": 10, "slow": 10}, done)
		require.Equal(t, done, named, "whose usage has changed")
		require.NoError(t, s.Close())
	})
}

// TestHandlesInFlightCountAsTheDiskHasGrown: nobody can measure files that were sent over a socket and not
// received. They may be as large as what the disk has more since all files of the container
// were visible.
func TestHandlesInFlightCountAsTheDiskHasGrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			if err := store.Containers.Create(tx, "a", v1.ContainerSpec{VolumeID: "v"}); err != nil {
				return err
			}
			return store.Containers.SetStatus(tx, "a", func(c *v1.ContainerStatus) { c.Phase = v1.Running })
		}))
		var mu sync.Mutex
		disk, usage, over := int64(50<<30), container.RootUsage{ContainerID: "1"}, 0
		set := func(change func()) {
			mu.Lock()
			defer mu.Unlock()
			change()
		}
		r := &container.Roots{Store: s, Log: slog.New(slog.DiscardHandler), Limit: func() int64 { return 1 << 30 },
			Disk: func() int64 { mu.Lock(); defer mu.Unlock(); return disk },
			Measure: func(context.Context, runtime.Name, runtime.Writable) (container.RootUsage, error) {
				mu.Lock()
				defer mu.Unlock()
				return usage, nil
			}}
		ctx, cancel := context.WithCancel(t.Context())
		var source sync.WaitGroup
		source.Go(func() { _ = r.Source()(ctx, func(string) { set(func() { over++ }) }) })
		for i, step := range []struct {
			grown    int64
			inFlight int
			changes  int // of the usage, as the controller receives
		}{
			{0, 0, 0}, {2 << 30, 0, 0}, // all files are visible, so others have written
			{1 << 29, 3, 0}, {1 << 29, 3, 0}, {1, 3, 1}, // more than the limit since they are not
			{0, 0, 2}, // all are visible again, and small
			{0, 1, 2},
		} {
			set(func() { disk += step.grown; usage.InFlight = step.inFlight })
			time.Sleep(time.Minute)
			synctest.Wait()
			set(func() { require.Equal(t, step.changes, over, "step %d", i) })
		}
		set(func() { usage.ContainerID, usage.InFlight, disk = "2", 1, disk+2<<30 })
		time.Sleep(time.Minute)
		synctest.Wait()
		set(func() { require.Equal(t, 3, over, "a new container that hides its files at once") })
		cancel()
		source.Wait()
		require.NoError(t, s.Close())
	})
}
