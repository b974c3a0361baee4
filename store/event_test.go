package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func emit(s *Store, n int) error {
	return s.Update(func(tx *Tx) error {
		for i := range n {
			tx.Emit(v1.Event{Container: "mc", Event: v1.EventState, Data: fmt.Sprint(i)})
		}
		return nil
	})
}

// rangeOf returns the range of the transitions that are kept.
func rangeOf(t *testing.T, s *Store) (oldest, newest uint64) {
	if oldest, newest = s.Read().EventBounds(); oldest > newest {
		oldest, newest = 0, 0 // none is kept
	}
	return oldest, newest
}

func read(s *Store, since uint64, limit int) ([]v1.Event, error) {
	return ReadEvents(s.Read(), since, limit)
}

func TestTransitionsHaveNoGap(t *testing.T) {
	s := openIn(t, t.TempDir())
	const writers, each = 16, 20
	require.NoError(t, emit(s, 8))
	var all sync.WaitGroup
	for f := range 8 {
		all.Go(func() {
			want := uint64(f) // each from another seq
			for e, err := range s.Events(t.Context(), want) {
				want++
				if err != nil || e.Seq != want || e.Container == "" {
					t.Errorf("follower %d: want %d, got %+v, %v", f, want, e, err)
					return
				}
				if want == writers*each {
					return
				}
			}
		})
	}
	broken := errors.New("broken")
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if w == 0 && i < 8 {
					continue // emitted before
				}
				err := s.Update(func(tx *Tx) error {
					e := tx.Emit(v1.Event{Container: "mc"})
					if e.Seq == 0 || !e.Time.Equal(tx.Now()) {
						t.Errorf("emitted %+v", e)
					}
					if rand.IntN(3) == 0 {
						return broken
					}
					return nil
				})
				if errors.Is(err, broken) {
					err = emit(s, 1)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, s.Revision(), "no object changed")
	list, err := read(s, 0, 1000)
	require.NoError(t, err)
	require.Len(t, list, writers*each)
	for i, e := range list {
		require.EqualValues(t, i+1, e.Seq)
	}
}

func TestReadTransitions(t *testing.T) {
	s := openIn(t, "")
	oldest, newest := rangeOf(t, s)
	require.Equal(t, [2]uint64{0, 0}, [2]uint64{oldest, newest})
	list, err := read(s, 0, 10)
	require.NoError(t, err)
	require.Empty(t, list)

	require.NoError(t, emit(s, 10))
	list, err = read(s, 3, 4)
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.EqualValues(t, 4, list[0].Seq)
	require.Equal(t, "3", list[0].Data)
	list, err = read(s, 10, 4)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = read(s, 11, 4)
	require.ErrorIs(t, err, ErrCompacted, "from another store")
	require.NoError(t, s.Update(func(tx *Tx) error {
		tx.Emit(v1.Event{Data: "own"})
		_, newest := tx.EventBounds()
		require.EqualValues(t, 11, newest, "an update sees its own transitions in the bounds")
		_, err := ReadEvents(tx, 9, 10)
		require.ErrorIs(t, err, errOnDisk)
		return nil
	}))
}

// TestTrimDuringView removes the transitions that a view is about to read: it begins anew.
func TestTrimDuringView(t *testing.T) {
	s := openIn(t, "")
	require.NoError(t, emit(s, 10))
	tries := 0
	var list []v1.Event
	trims := []func() (int, error){
		func() (int, error) { return s.TrimEvents(time.Time{}, 4) },
		func() (int, error) { return s.TrimEvents(time.Now().Add(time.Hour), 0) },
		func() (int, error) { return 0, emit(s, 1) },
	}
	require.NoError(t, s.ViewEvents(func(tx *Tx) (err error) {
		oldest, _ := tx.EventBounds()
		_, err = trims[tries]()
		require.NoError(t, err)
		tries++
		list, err = ReadEvents(tx, oldest-1, 100)
		return err
	}))
	require.Equal(t, 3, tries)
	require.Empty(t, list)
	require.ErrorIs(t, s.ViewEvents(func(*Tx) error { return ErrCompacted }), ErrCompacted)
}

// TestEventsBackward reads the kept transitions of a view, newest first.
func TestEventsBackward(t *testing.T) {
	s := openIn(t, "")
	backward := func(tx *Tx) (seqs []uint64) {
		for e, err := range tx.EventsBackward() {
			require.NoError(t, err)
			seqs = append(seqs, e.Seq)
		}
		return seqs
	}
	view := func(fn func(*Tx)) {
		fn(s.Read())
	}
	view(func(tx *Tx) { require.Empty(t, backward(tx)) })
	require.NoError(t, emit(s, 300))
	_, err := s.TrimEvents(time.Time{}, 3)
	require.NoError(t, err)
	view(func(tx *Tx) {
		require.NoError(t, emit(s, 2))
		require.Equal(t, []uint64{300, 299, 298}, backward(tx), "those of the view")
	})
	_, err = s.TrimEvents(time.Now().Add(time.Hour), 0)
	require.NoError(t, err)
	view(func(tx *Tx) { require.Empty(t, backward(tx)) })
}

func TestEventsEndWithTheirContext(t *testing.T) {
	s := openIn(t, "")
	require.NoError(t, emit(s, 10))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []uint64
	for e, err := range s.Events(ctx, 0) {
		require.NoError(t, err)
		seen = append(seen, e.Seq)
		if e.Seq == 3 {
			cancel()
		}
	}
	require.Equal(t, []uint64{1, 2, 3}, seen)
}

func TestTrimKeepsNewAndRecentTransitions(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	o := Options{Now: func() time.Time { return now }}
	s, err := Open(dir, o)
	require.NoError(t, err)
	trim := func(before time.Time, keep, want int) {
		t.Helper()
		removed, err := s.TrimEvents(before, keep)
		require.NoError(t, err)
		require.Equal(t, want, removed)
	}
	require.NoError(t, emit(s, 1500))
	require.NoError(t, emit(s, 1500))
	now = now.Add(time.Hour)
	require.NoError(t, emit(s, 100))

	trim(now.Add(-2*time.Hour), 5000, 0)
	trim(now.Add(-2*time.Hour), 600, 2500)
	oldest, newest := rangeOf(t, s)
	require.Equal(t, [2]uint64{2501, 3100}, [2]uint64{oldest, newest})
	_, err = read(s, 2499, 1)
	require.ErrorIs(t, err, ErrCompacted)
	list, err := read(s, 2500, 1)
	require.NoError(t, err)
	require.EqualValues(t, 2501, list[0].Seq)
	for _, err := range s.Events(t.Context(), 100) {
		require.ErrorIs(t, err, ErrCompacted)
	}

	trim(now, 600, 500)
	oldest, newest = rangeOf(t, s)
	require.Equal(t, [2]uint64{3001, 3100}, [2]uint64{oldest, newest})
	trim(now.Add(time.Hour), 600, 100)
	oldest, newest = rangeOf(t, s)
	require.Equal(t, [2]uint64{0, 0}, [2]uint64{oldest, newest})
	require.NoError(t, s.Close())

	s, err = Open(dir, o)
	require.NoError(t, err)
	require.NoError(t, emit(s, 1))
	oldest, newest = rangeOf(t, s)
	require.Equal(t, [2]uint64{3101, 3101}, [2]uint64{oldest, newest}, "seqs continue")
	_, err = read(s, 3099, 1)
	require.ErrorIs(t, err, ErrCompacted)
	require.NoError(t, s.Close())
}

func TestEventsOfAReopenedStore(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, emit(s, 600))
	require.NoError(t, s.Close())
	s = openIn(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	want := uint64(0)
	for e, err := range s.Events(ctx, 0) {
		require.NoError(t, err)
		want++
		require.Equal(t, want, e.Seq)
		switch want {
		case 600:
			require.NoError(t, emit(s, 3))
		case 603:
			cancel()
		}
	}
	require.EqualValues(t, 603, want)
}

func TestCursors(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Update(func(tx *Tx) error {
		require.Zero(t, Cursor(tx, "remote"))
		return SetCursor(tx, "remote", 1<<40)
	}))
	require.NoError(t, s.Close())
	s = openIn(t, dir)
	tx := s.Read()
	require.EqualValues(t, 1<<40, Cursor(tx, "remote"))
	require.Zero(t, Cursor(tx, "other"))
	require.Zero(t, s.Revision())
}

func TestEventsCarryTheUID(t *testing.T) {
	s, err := Open("", Options{})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Update(func(tx *Tx) error {
		if err := Containers.Create(tx, "mc", v1.ContainerSpec{}); err != nil {
			return err
		}
		o, err := Containers.Get(tx, "mc")
		require.NotEmpty(t, o.Meta.UID)
		require.Equal(t, o.Meta.UID, tx.Emit(v1.Event{Container: "mc"}).UID)
		require.Empty(t, tx.Emit(v1.Event{Container: "none"}).UID)
		return err
	}))
}

// TestStatusEmitsItsTransition: one for each change of the state, in the commit that stores it.
func TestStatusEmitsItsTransition(t *testing.T) {
	s := openIn(t, "")
	by := v1.Actor{Name: "alice", Via: v1.ViaHTTP}
	require.NoError(t, s.Update(func(tx *Tx) error {
		return Backups.Create(tx, "b", v1.BackupSpec{VolumeID: "v", RequestedBy: by})
	}))
	for _, state := range []v1.JobState{v1.JobPending, v1.JobRunning, v1.JobRunning, v1.JobCompleted} {
		require.NoError(t, s.Update(func(tx *Tx) error {
			return Backups.SetStatus(tx, "b", func(st *v1.BackupStatus) { st.State = state; st.Attempts++ })
		}))
	}
	list, err := read(s, 0, 10)
	require.NoError(t, err)
	require.Len(t, list, 3)
	for i, state := range []string{"pending", "running", "completed"} {
		require.Equal(t, []any{v1.EventBackup, state, "b", "v", by}, []any{list[i].Event, list[i].Data, list[i].Backup, list[i].Volume, list[i].Actor})
	}
	{
		b, err := Backups.Get(s.Read(), "b")
		require.EqualValues(t, 3, b.Status.Seq)
		require.NoError(t, err)
	}
}

// TestEventThatCannotBeStored fails its update: a transition is stored with the status that it reports, or
// neither is.
func TestEventThatCannotBeStored(t *testing.T) {
	now := time.Now()
	s, err := Open("", Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer s.Close()
	now = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) // JSON has no such year
	require.Error(t, s.Update(func(tx *Tx) error {
		tx.Emit(v1.Event{Event: v1.EventMessage})
		return SetCursor(tx, "reader", 7)
	}))
	require.Zero(t, Cursor(s.Read(), "reader"))
}
