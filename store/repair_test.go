package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// failing lets the next n commits fail, before or after they took effect.
func failing(t *testing.T, s *Store, n int, kept bool) {
	t.Helper()
	require.NoError(t, s.Update(func(*Tx) error { // on the writer's goroutine
		s.commit = func(commit func() error) error {
			if n--; n < 0 {
				return commit()
			}
			if kept {
				if err := commit(); err != nil {
					return err
				}
			}
			return unix.EIO
		}
		return nil
	}))
}

// createWithEvent creates a container and a transition.
func createWithEvent(s *Store, id string) error {
	return s.Update(func(tx *Tx) error {
		Emit(tx, v1.Event{Container: id, Event: v1.EventState, Data: "ready"})
		return Containers.Create(tx, id, v1.ContainerSpec{VolumeID: "v"})
	})
}

// watched collects the changes after a revision until the test ends.
func watched(t *testing.T, s *Store, since uint64) func() []Change {
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var all []Change
	var ended sync.WaitGroup
	ended.Go(func() {
		for c, err := range s.Watch(ctx, since) {
			if err == nil {
				mu.Lock()
				all = append(all, c)
				mu.Unlock()
			}
		}
	})
	t.Cleanup(func() { cancel(); ended.Wait() })
	return func() []Change { mu.Lock(); defer mu.Unlock(); return all }
}

func TestFailedCommitIsRetriedBeforeTheAnswer(t *testing.T) {
	for name, kept := range map[string]bool{"nothing was kept": false, "all was kept": true} {
		t.Run(name, func(t *testing.T) {
			s := openIn(t, t.TempDir())
			require.NoError(t, createWithEvent(s, "a"))
			changes := watched(t, s, 1)
			failing(t, s, 1, kept)
			require.NoError(t, createWithEvent(s, "b"))
			require.NoError(t, createWithEvent(s, "c"))
			require.NoError(t, s.Writable())
			require.Equal(t, []string{"a", "b", "c"}, ids(t, s))
			require.EqualValues(t, 3, s.Revision())
			require.Eventually(t, func() bool { return len(changes()) == 2 }, time.Minute, time.Millisecond)
			require.Equal(t, Change{Revision: 2, Kind: "container", ID: "b"}, changes()[0])
			n := uint64(0)
			for e, err := range s.Events(t.Context(), 0) {
				require.NoError(t, err)
				n++
				require.Equal(t, n, e.Seq)
				if n == 3 {
					break
				}
			}
		})
	}
}

func TestStoreIsRepairedWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	require.NoError(t, createWithEvent(s, "a"))
	failing(t, s, 4, false)
	err := createWithEvent(s, "b")
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorIs(t, err, unix.EIO)
	require.Equal(t, []string{"a"}, ids(t, s))
	require.Eventually(t, func() bool { return createWithEvent(s, "c") == nil }, time.Minute, time.Millisecond)
	require.Equal(t, []string{"a", "c"}, ids(t, s))
	require.NoError(t, s.Close())
	require.Equal(t, []string{"a", "c"}, ids(t, openIn(t, dir)))
}

// An update that failed may be on the disk all the same: then watchers see it.
func TestWatchersSeeFailedButStoredUpdates(t *testing.T) {
	s := openIn(t, t.TempDir())
	require.NoError(t, createWithEvent(s, "a"))
	ctx, cancel := context.WithCancel(t.Context())
	seen, done := make(chan string, 10), make(chan struct{})
	go func() {
		defer close(done)
		_ = Containers.Source(s)(ctx, func(id string) { seen <- id })
	}()
	require.Equal(t, "a", <-seen)
	failing(t, s, 2, true)
	require.ErrorIs(t, createWithEvent(s, "b"), ErrFailed)
	got := map[string]bool{}
	for !got["b"] {
		got[<-seen] = true
	}
	require.Eventually(t, func() bool { return s.Writable() == nil }, time.Minute, time.Millisecond)
	require.EqualValues(t, 2, s.Revision())
	for e, err := range s.Events(t.Context(), 1) {
		require.NoError(t, err)
		require.Equal(t, "b", e.Container)
		break
	}
	cancel()
	<-done
}
