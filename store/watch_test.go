package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestWatchYieldsEveryChangeInOrder(t *testing.T) {
	s := openIn(t, t.TempDir())
	var watchers sync.WaitGroup
	const n = 300
	for range 8 {
		watchers.Go(func() {
			want := uint64(1)
			for c, err := range s.Watch(t.Context(), 0) {
				if err != nil || c.Revision != want || c.Kind != "container" || c.What != SpecChanged {
					t.Errorf("change %d: %+v, %v", want, c, err)
					return
				}
				if _, err := Containers.Get(s.Read(), c.ID); err != nil {
					t.Error("notified before it could be read:", err)
				}
				if want++; want > n {
					return
				}
			}
		})
	}
	var writers sync.WaitGroup
	for w := range 10 {
		writers.Go(func() {
			for i := range n / 10 {
				if err := create(s, fmt.Sprintf("%d-%d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	watchers.Wait()
}

func TestWatchFromAnyRevision(t *testing.T) {
	s := openIn(t, "")
	s.changes = newChanges(100, 0)
	for i := range 250 {
		id := strconv.Itoa(i)
		require.NoError(t, s.Update(func(tx *Tx) error {
			return errors.Join(Containers.Create(tx, id, v1.ContainerSpec{}), Volumes.Create(tx, id, v1.VolumeSpec{}),
				Volumes.Delete(tx, id)) // no other change for a watcher
		}))
	}
	for _, since := range []uint64{200, 201, 248, 249} {
		want := []Change(nil)
		for rev := since + 1; rev <= 250; rev++ {
			id := strconv.FormatUint(rev-1, 10)
			want = append(want, Change{rev, "container", id, SpecChanged}, Change{rev, "volume", id, SpecChanged})
		}
		var got []Change
		for c, err := range s.Watch(t.Context(), since) {
			require.NoError(t, err)
			if got = append(got, c); len(got) == len(want) {
				break
			}
		}
		require.Equal(t, want, got, "since %d", since)
	}
	for _, since := range []uint64{0, 1, 149} {
		for _, err := range s.Watch(t.Context(), since) {
			require.ErrorIs(t, err, ErrCompacted, "since %d", since)
		}
	}
}

func TestWatchThatFallsBehindIsCompacted(t *testing.T) {
	s := openIn(t, "")
	s.changes = newChanges(10, 0)
	require.NoError(t, create(s, "first"))
	var last error
	for _, err := range s.Watch(t.Context(), 0) {
		if last = err; err != nil {
			break
		}
		for i := range 20 {
			require.NoError(t, create(s, strconv.Itoa(i)))
		}
	}
	require.ErrorIs(t, last, ErrCompacted)
}

func TestWatchEndsWithItsContextAndWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open("", Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := map[string]error{}
		var all sync.WaitGroup
		var mu sync.Mutex
		watch := func(name string, ctx context.Context, run func(context.Context) error) {
			all.Go(func() {
				err := run(ctx)
				mu.Lock()
				defer mu.Unlock()
				ended[name] = err
			})
		}
		changes := func(ctx context.Context) (last error) {
			for _, last = range s.Watch(ctx, 0) {
			}
			return last
		}
		events := func(ctx context.Context) (last error) {
			for _, last = range s.Events(ctx, 0) {
			}
			return last
		}
		source := func(ctx context.Context) error { return Containers.Source(s)(ctx, func(string) {}) }
		for name, run := range map[string]func(context.Context) error{"changes": changes, "events": events, "source": source} {
			watch(name+" of ctx", ctx, run)
			watch(name+" of store", context.Background(), run)
		}
		synctest.Wait()
		require.Empty(t, ended)
		cancel()
		synctest.Wait()
		require.Equal(t, map[string]error{"changes of ctx": nil, "events of ctx": nil, "source of ctx": nil}, ended)
		require.NoError(t, s.Close())
		all.Wait()
		for _, name := range []string{"changes", "events", "source"} {
			require.ErrorIs(t, ended[name+" of store"], ErrClosed)
		}
	})
}

func TestRevisionsContinueAfterReopening(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	require.NoError(t, create(s, "b"))
	require.NoError(t, s.Close())
	s = openIn(t, dir)
	for _, err := range s.Watch(t.Context(), 1) {
		require.ErrorIs(t, err, ErrCompacted)
	}
	require.NoError(t, create(s, "c"))
	for c, err := range s.Watch(t.Context(), 2) {
		require.NoError(t, err)
		require.Equal(t, Change{3, "container", "c", SpecChanged}, c)
		break
	}
}
