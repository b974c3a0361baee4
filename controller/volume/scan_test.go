package volume_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/volume"
	"berth/store"
)

// usages is Directories that record the order of the walks.
type usages struct {
	*disk

	mu    sync.Mutex
	order []string
}

func (u *usages) Scan(_ context.Context, id string) (v1.Usage, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.order = append(u.order, id)
	return v1.Usage{}, nil
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

// TestVolumesAreMeasuredEachMinute: with and without a limit, and none twice.
func TestVolumesAreMeasuredEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			for id, limit := range map[string]int64{"a": 1 << 30, "b": 0, "c": 1 << 30, "d": 0} {
				if err := store.Volumes.Create(tx, id, v1.VolumeSpec{SizeLimit: limit}); err != nil {
					return err
				}
				if err := store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) { s.Created = true }); err != nil {
					return err
				}
			}
			return store.Volumes.Create(tx, "new", v1.VolumeSpec{})
		}))
		u := &usages{disk: &disk{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			_ = (&volume.Scanner{Store: s, Directories: u, Log: slog.New(slog.DiscardHandler)}).Source()(ctx, func(string) {})
		}()
		time.Sleep(30 * time.Second)
		require.Equal(t, []string{"a", "c", "b", "d"}, u.walked(), "those with a limit first")
		require.NoError(t, s.Update(func(tx *store.Tx) error { return store.Volumes.Purge(tx, "a") }))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"c", "b", "d"}, u.walked())
	})
}

// TestIdleVolumesAreMeasuredLessOften: those without a limit, the longer nothing changes, and those with one each minute.
func TestIdleVolumesAreMeasuredLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			for id, limit := range map[string]int64{"limited": 1 << 30, "free": 0} {
				if err := store.Volumes.Create(tx, id, v1.VolumeSpec{SizeLimit: limit}); err != nil {
					return err
				}
				if err := store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) { s.Created = true }); err != nil {
					return err
				}
			}
			return nil
		}))
		u := &usages{disk: &disk{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			_ = (&volume.Scanner{Store: s, Directories: u, Log: slog.New(slog.DiscardHandler)}).Source()(ctx, func(string) {})
		}()
		time.Sleep(30 * time.Second)
		walks := func() (minutes []int) { // at which the free one was walked
			for minute := range 32 {
				walked := u.walked()
				require.Equal(t, "limited", walked[0])
				if len(walked) > 1 {
					minutes = append(minutes, minute)
				}
				time.Sleep(time.Minute)
			}
			return minutes
		}
		require.Equal(t, []int{0, 1, 3, 7, 15, 23, 31}, walks())
		u.set(func() { u.used = 4096 })
		require.Equal(t, []int{7, 8, 10, 14, 22, 30}, walks())
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
		u := &usages{disk: &disk{}}
		scanner := &volume.Scanner{Store: s, Directories: u, Log: slog.New(slog.DiscardHandler)}
		require.NoError(t, scanner.Source()(ctx, func(string) { cancel() }))
		require.Equal(t, []string{"a"}, u.walked())
	})
}

// slowest is Directories on which the walk of the volume a takes long.
type slowest struct{ *usages }

func (s slowest) Scan(ctx context.Context, id string) (v1.Usage, error) {
	if id == "a" {
		time.Sleep(5 * time.Minute)
	}
	return s.usages.Scan(ctx, id)
}

// TestSlowVolumeDelaysNoOther: a volume whose walk takes long delays the others once.
func TestSlowVolumeDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			for _, id := range []string{"a", "b"} {
				if err := store.Volumes.Create(tx, id, v1.VolumeSpec{SizeLimit: 1 << 30}); err != nil {
					return err
				}
				if err := store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) { s.Created = true }); err != nil {
					return err
				}
			}
			return nil
		}))
		u := &usages{disk: &disk{}}
		ctx, cancel := context.WithCancel(t.Context())
		var scanner sync.WaitGroup
		scanner.Go(func() {
			_ = (&volume.Scanner{Store: s, Directories: slowest{u}, Log: slog.New(slog.DiscardHandler)}).Source()(ctx, func(string) {})
		})
		time.Sleep(5*time.Minute + time.Second)
		require.Equal(t, []string{"a", "b"}, u.walked()[:2])
		for range 3 {
			time.Sleep(time.Hour)
			walks := map[string]int{}
			for _, id := range u.walked() {
				walks[id]++
			}
			require.InDelta(t, 3, walks["a"], 1)
			require.InDelta(t, 60, walks["b"], 1)
		}
		cancel()
		scanner.Wait()
	})
}
