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

// layers measures each container in its time.
type layers struct {
	mu    sync.Mutex
	takes map[string]time.Duration
	done  map[string]int // measurements that have ended
	last  map[string]time.Time
	gap   map[string]time.Duration // longest between two
}

func (l *layers) measure(ctx context.Context, n runtime.Name, _, _ string) (container.RootUsage, error) {
	l.mu.Lock()
	took := time.NewTimer(l.takes[n.ID])
	l.mu.Unlock()
	select {
	case <-took.C:
	case <-ctx.Done():
		return container.RootUsage{}, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, before := l.last[n.ID]; before {
		l.gap[n.ID] = max(l.gap[n.ID], time.Since(last))
	}
	l.done[n.ID]++
	l.last[n.ID] = time.Now()
	return container.RootUsage{ContainerID: n.ID, Usage: v1.Usage{Bytes: int64(l.done[n.ID]) << 30}}, nil
}

func (l *layers) set(id string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takes[id] = took
	delete(l.gap, id)
}

// TestSlowMeasurementDelaysNoOther: three containers take 20 s, a minute, and for ever to
// be measured. The others are measured every 30 s, and so is one that is fast again.
func TestSlowMeasurementDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		l := &layers{takes: map[string]time.Duration{"slow": 20 * time.Second, "slower": time.Minute, "never": time.Hour},
			done: map[string]int{}, last: map[string]time.Time{}, gap: map[string]time.Duration{}}
		for _, id := range []string{"a", "b", "slow", "slower", "never"} {
			require.NoError(t, s.Update(func(tx *store.Tx) error {
				if err := store.Containers.Create(tx, id, v1.ContainerSpec{VolumeID: "v"}); err != nil {
					return err
				}
				return store.Containers.SetStatus(tx, id, func(c *v1.ContainerStatus) { c.Phase = v1.Running })
			}))
		}
		r := &container.Roots{Store: s, Measure: l.measure, Limit: func() int64 { return 0 }, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		named := map[string]int{}
		all.Go(func() {
			_ = r.Source()(ctx, func(id string) {
				l.mu.Lock()
				named[id]++
				l.mu.Unlock()
			})
		})
		time.Sleep(time.Hour)
		l.set("slow", time.Second)
		time.Sleep(time.Hour)
		l.set("slow", 0)
		time.Sleep(time.Hour)
		cancel()
		all.Wait()
		require.NoError(t, s.Close())
		for _, id := range []string{"a", "b", "slow"} {
			require.LessOrEqual(t, l.gap[id], 30*time.Second, id)
		}
		require.Positive(t, named["slower"], "a slow one is measured too")
		require.Zero(t, l.done["never"])
	})
}

// TestOpenFilesAreReadWhenTheyMayHaveGrown: open files of a container without any that have no
// name are read every minute, and at once if the disk loses space or the container is another.
func TestOpenFilesAreReadWhenTheyMayHaveGrown(t *testing.T) {
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
		free, engineID, open, failed := int64(1<<40), "x", int64(0), error(nil)
		measured, read := 0, 0
		r := &container.Roots{Store: s, Limit: func() int64 { return 1 << 30 }, Log: slog.New(slog.DiscardHandler),
			Free: func() int64 { mu.Lock(); defer mu.Unlock(); return free },
			Measure: func(_ context.Context, _ runtime.Name, _, noneOpen string) (container.RootUsage, error) {
				mu.Lock()
				defer mu.Unlock()
				measured++
				u := container.RootUsage{ContainerID: engineID}
				if noneOpen != engineID {
					read++
					u.Open, u.Bytes = open, open
				}
				return u, failed
			}}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = r.Source()(ctx, func(string) {}) })
		// reads returns the measurements and the readings of some time after a change.
		reads := func(change func(), d time.Duration) [2]int {
			mu.Lock()
			change()
			measured, read = 0, 0
			mu.Unlock()
			time.Sleep(d)
			mu.Lock()
			defer mu.Unlock()
			return [2]int{measured, read}
		}
		time.Sleep(time.Second)
		require.Equal(t, [2]int{16, 4}, reads(func() {}, 4*time.Minute))
		require.Equal(t, [2]int{1, 1}, reads(func() { free -= 1 << 30 }, 3*time.Second), "the disk has lost space")
		require.Equal(t, [2]int{4, 1}, reads(func() { engineID = "y" }, time.Minute), "another container")
		require.Equal(t, [2]int{4, 4}, reads(func() { engineID, open = "z", 1 }, time.Minute), "it has such files")
		require.Equal(t, [2]int{4, 4}, reads(func() { engineID, open, failed = "y", 0, context.DeadlineExceeded }, time.Minute), "unknown")
		require.Equal(t, [2]int{4, 4}, reads(func() { failed, free = nil, 0 }, time.Minute), "the disk is unknown")
		cancel()
		all.Wait()
		require.NoError(t, s.Close())
	})
}
