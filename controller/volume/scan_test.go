package volume_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/volume"
	"berth/store"
)

// usages is Directories with a usage for each volume. It records the order of the walks.
type usages struct {
	*disk

	mu    sync.Mutex
	of    map[string]int64
	order []string
}

func (u *usages) Scan(_ context.Context, id string) (v1.Usage, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.order = append(u.order, id)
	return v1.Usage{Bytes: u.of[id]}, nil
}

// grow adds a byte to a volume.
func (u *usages) grow(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of[id]++
}

// walked returns the volumes that were walked since the call before, in order.
func (u *usages) walked() []string {
	synctest.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	order := u.order
	u.order = nil
	return order
}

// TestChangedVolumesAreMeasuredFirst: also after other volumes have been removed.
func TestChangedVolumesAreMeasuredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			for _, id := range []string{"a", "b", "c", "d"} {
				if err := store.Volumes.Create(tx, id, v1.VolumeSpec{SizeLimit: 1 << 30}); err != nil {
					return err
				}
				if err := store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) { s.Created = true }); err != nil {
					return err
				}
			}
			return nil
		}))
		u := &usages{disk: &disk{}, of: map[string]int64{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			_ = (&volume.Scanner{Store: s, Directories: u, Log: slog.New(slog.DiscardHandler)}).Source()(ctx, func(string) {})
		}()
		time.Sleep(30 * time.Second)
		require.Equal(t, []string{"a", "b", "c", "d"}, u.walked())
		for _, removed := range []string{"", "a"} {
			u.grow("c")
			time.Sleep(time.Minute)
			u.walked() // finds the change
			if removed != "" {
				require.NoError(t, s.Update(func(tx *store.Tx) error { return store.Volumes.Purge(tx, removed) }))
			}
			time.Sleep(time.Minute)
			require.Equal(t, "c", u.walked()[0])
			time.Sleep(time.Minute)
			require.NotEqual(t, "c", u.walked()[0], "it has not changed any more")
		}
	})
}

// TestVolumesWithoutLimitTakeTurns: all are measured in the first minute, then each once in
// five minutes.
func TestVolumesWithoutLimitTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		const volumes = 100
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			for i := range volumes {
				id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
				if err := store.Volumes.Create(tx, id, v1.VolumeSpec{}); err != nil {
					return err
				}
				if err := store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) { s.Created = true }); err != nil {
					return err
				}
			}
			return nil
		}))
		u := &usages{disk: &disk{}, of: map[string]int64{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			_ = (&volume.Scanner{Store: s, Directories: u, Log: slog.New(slog.DiscardHandler)}).Source()(ctx, func(string) {})
		}()
		var order []string
		for minute := range 11 {
			time.Sleep(30 * time.Second)
			walked := u.walked()
			if minute > 0 {
				require.InDelta(t, volumes/5, len(walked), volumes/5-1)
			}
			order = append(order, walked...)
			if minute%5 == 0 {
				slices.Sort(order)
				require.Len(t, order, volumes)
				require.Len(t, slices.Compact(order), volumes)
				order = nil
			}
			time.Sleep(30 * time.Second)
			order = append(order, u.walked()...)
		}
	})
}

// TestScannerEndsAtOnce: a daemon that shuts down walks no further volume.
func TestScannerEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			for _, id := range []string{"a", "b", "c"} {
				if err := store.Volumes.Create(tx, id, v1.VolumeSpec{}); err != nil {
					return err
				}
				if err := store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) { s.Created = true }); err != nil {
					return err
				}
			}
			return nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		u := &usages{disk: &disk{}, of: map[string]int64{}}
		scanner := &volume.Scanner{Store: s, Directories: u, Log: slog.New(slog.DiscardHandler)}
		require.NoError(t, scanner.Source()(ctx, func(string) { cancel() }))
		require.Equal(t, []string{"a"}, u.walked())
	})
}
