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
		measure := func(ctx context.Context, n runtime.Name) (container.RootUsage, error) {
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
		r := &container.Roots{Store: s, Measure: measure, Limit: func() int64 { return 0 }, Log: slog.New(slog.DiscardHandler)}
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
