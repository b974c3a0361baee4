package store

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func setPhase(s *Store, id string, p v1.Phase) error {
	return s.Update(func(tx *Tx) error {
		return Containers.SetStatus(tx, id, func(st *v1.ContainerStatus) { st.Phase = p })
	})
}

func TestSourceNotifiesAllThenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open("", Options{})
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, create(s, "b"))
		require.NoError(t, create(s, "a"))
		ctx, cancel := context.WithCancel(t.Context())
		var specs, all []string
		for list, source := range map[*[]string]func(context.Context, func(string)) error{
			&specs: Containers.Source(s, SpecChanged, Purged),
			&all:   Containers.Source(s),
		} {
			go func() {
				if err := source(ctx, func(id string) { *list = append(*list, id) }); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, specs)
		require.NoError(t, setPhase(s, "a", v1.Ready))
		require.NoError(t, setPhase(s, "a", v1.Ready)) // changes nothing
		require.NoError(t, create(s, "c"))
		require.NoError(t, s.Update(func(tx *Tx) error { return Volumes.Create(tx, "v", v1.VolumeSpec{}) }))
		require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "b") }))
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c", "b"}, specs)
		require.Equal(t, []string{"a", "b", "a", "c", "b"}, all)
	})
}

func TestSourceThatFallsBehindBeginsAgain(t *testing.T) {
	s := openIn(t, "")
	s.changes = newChanges(4, 0)
	require.NoError(t, create(s, "0"))
	ctx, cancel := context.WithCancel(t.Context())
	seen := map[string]bool{}
	err := Containers.Source(s)(ctx, func(id string) {
		for i := 1; len(seen) == 0 && i <= 10; i++ {
			require.NoError(t, create(s, strconv.Itoa(i)))
		}
		if seen[id] = true; len(seen) == 11 {
			cancel()
		}
	})
	require.NoError(t, err)
	require.Len(t, seen, 11)
}

func TestAwaitInsideABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open("", Options{})
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, create(s, "mc"))
		running := func(c v1.Container) bool { return c.Status.Phase == v1.Running }
		go func() {
			time.Sleep(time.Hour) // of the bubble's clock
			for _, p := range []v1.Phase{v1.Installing, v1.Starting, v1.Running} {
				if err := setPhase(s, "mc", p); err != nil {
					t.Error(err)
				}
			}
		}()
		began := time.Now()
		o, err := Containers.Await(t.Context(), s, "mc", running)
		require.NoError(t, err)
		require.Equal(t, v1.Running, o.Status.Phase)
		require.Equal(t, time.Hour, time.Since(began))
		require.Equal(t, o.Meta.UpdatedAt.Local(), began.Add(time.Hour).Round(0))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		o, err = Containers.Await(ctx, s, "mc", func(v1.Container) bool { return false })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, v1.Running, o.Status.Phase)

		go func() {
			time.Sleep(time.Minute)
			_ = s.Update(func(tx *Tx) error { return Containers.Purge(tx, "mc") })
		}()
		_, err = Containers.Await(t.Context(), s, "mc", func(v1.Container) bool { return false })
		require.ErrorIs(t, err, ErrNotFound)
	})
}
