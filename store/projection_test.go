package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// projected is what the projections of these tests derive: the revision and the seq of
// a container.
type projected struct{ revision, seq uint64 }

func newProjected(s *Store, derived *int) *Projection[v1.ContainerSpec, v1.ContainerStatus, projected] {
	return NewProjection(s, Containers, func(o v1.Container) projected {
		*derived++
		return projected{o.Meta.Revision, o.Status.Seq}
	})
}

type containerProjection = *Projection[v1.ContainerSpec, v1.ContainerStatus, projected]

// valuesOf returns the values of a projection, by id, and their revision.
func valuesOf(t testing.TB, p containerProjection) (map[string]projected, uint64) {
	values, at := map[string]projected{}, uint64(0)
	err := p.Read(func(items []Projected[projected], rev uint64) {
		at = rev
		for i, item := range items {
			if i > 0 && items[i-1].ID >= item.ID {
				t.Errorf("%s comes after %s", item.ID, items[i-1].ID)
			}
			values[item.ID] = item.Value
		}
	})
	if err != nil {
		t.Error(err)
	}
	return values, at
}

func setSeq(s *Store, id string, seq uint64) error {
	return s.Update(func(tx *Tx) error {
		return Containers.SetStatus(tx, id, func(st *v1.ContainerStatus) { st.Seq = seq })
	})
}

func TestProjectionDerivesWhatHasChanged(t *testing.T) {
	s := openIn(t, t.TempDir())
	derived := 0
	p := newProjected(s, &derived)
	for i := range 20 {
		require.NoError(t, create(s, fmt.Sprint("c-", i)))
	}
	values, _ := valuesOf(t, p)
	require.Len(t, values, 20)
	require.Equal(t, 20, derived)
	valuesOf(t, p)
	require.Equal(t, 20, derived, "nothing has changed")
	require.NoError(t, setSeq(s, "c-7", 3))
	require.NoError(t, setSeq(s, "c-7", 4))
	require.NoError(t, create(s, "c"), "sorts before c-0, and its key after it")
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "c-9") }))
	values, _ = valuesOf(t, p)
	require.Equal(t, 22, derived)
	require.Len(t, values, 20)
	require.EqualValues(t, 4, values["c-7"].seq)
	require.NotContains(t, values, "c-9")
	_, found, err := p.Get("c")
	require.True(t, found && err == nil)
	_, found, err = p.Get("c-9")
	require.False(t, found || err != nil)
	require.NoError(t, s.Close())
	require.ErrorIs(t, p.Read(func([]Projected[projected], uint64) {}), ErrClosed)
}

// TestProjectionReadsAgain expects every object after more changes than are kept.
func TestProjectionReadsAgain(t *testing.T) {
	s := openIn(t, "")
	derived := 0
	p := newProjected(s, &derived)
	require.NoError(t, create(s, "old"))
	require.NoError(t, create(s, "gone"))
	valuesOf(t, p)
	require.NoError(t, setSeq(s, "old", 1))
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "gone") }))
	require.NoError(t, create(s, "busy"))
	for i := range uint64(keptChanges/100 + 1) {
		require.NoError(t, s.Update(func(tx *Tx) error {
			for k := range uint64(100) {
				id := fmt.Sprint("v", i*100+k)
				if err := Volumes.Create(tx, id, v1.VolumeSpec{}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	values, _ := valuesOf(t, p)
	require.Len(t, values, 2)
	require.EqualValues(t, 1, values["old"].seq)
}

// TestProjectionIsConsistent changes containers in several goroutines: each sees its own
// changes at once, and every read is the state of one revision.
func TestProjectionIsConsistent(t *testing.T) {
	s := openIn(t, t.TempDir())
	derived := 0
	p := newProjected(s, &derived)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for seq := uint64(1); seq <= 150; seq++ {
				id := fmt.Sprint(w, "-", random.IntN(5))
				change(t, s, id, seq, random.IntN(4) == 0)
				values, at := valuesOf(t, p)
				if v, found := values[id]; found && v.seq != seq {
					t.Errorf("%s has seq %d after %d was stored", id, v.seq, seq)
				}
				sameAsList(t, s, values, at)
			}
		})
	}
	all.Wait()
}

// change creates, changes or purges a container.
func change(t *testing.T, s *Store, id string, seq uint64, purge bool) {
	err := s.Update(func(tx *Tx) error {
		if purge {
			return Containers.Purge(tx, id)
		}
		if _, err := Containers.Get(tx, id); errors.Is(err, ErrNotFound) {
			if err := Containers.Create(tx, id, v1.ContainerSpec{}); err != nil {
				return err
			}
		}
		return Containers.SetStatus(tx, id, func(st *v1.ContainerStatus) { st.Seq = seq })
	})
	if err != nil {
		t.Error(err)
	}
}

// sameAsList compares values of a revision with the store, if it is still at it.
func sameAsList(t *testing.T, s *Store, values map[string]projected, at uint64) {
	err := s.View(func(tx *Tx) error {
		list, err := Containers.List(tx)
		if tx.Revision() != at || err != nil {
			return err
		}
		for _, o := range list {
			if want := (projected{o.Meta.Revision, o.Status.Seq}); values[o.Meta.ID] != want {
				t.Errorf("revision %d: %s is %v, not %v", at, o.Meta.ID, values[o.Meta.ID], want)
			}
		}
		if len(list) != len(values) {
			t.Errorf("revision %d: %d containers, not %d", at, len(values), len(list))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestProjectionWaitsForThePublication reads between the commit and its publication: the
// commit may still fail.
func TestProjectionWaitsForThePublication(t *testing.T) {
	s := openIn(t, t.TempDir())
	derived := 0
	before, fresh := newProjected(s, &derived), newProjected(s, &derived)
	require.NoError(t, create(s, "a"))
	valuesOf(t, before)
	stored, publish := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(publish) })
	t.Cleanup(release) // before the store is closed
	s.commit = func(commit func() error) error {
		err := commit()
		close(stored)
		<-publish
		return err
	}
	var all sync.WaitGroup
	all.Go(func() {
		if err := create(s, "b"); err != nil {
			t.Error(err)
		}
	})
	<-stored
	require.NoError(t, s.View(func(tx *Tx) error { _, err := Containers.Get(tx, "b"); return err }), "a view sees it")
	values, _ := valuesOf(t, before)
	require.Len(t, values, 1, "it is not published")
	for _, p := range []containerProjection{before, fresh} {
		_, err := p.changed()
		require.ErrorIs(t, err, errUnpublished)
	}
	all.Go(func() {
		values, rev := valuesOf(t, fresh)
		if len(values) != 2 || rev != s.Revision() {
			t.Errorf("revision %d: %v", rev, values)
		}
	})
	release()
	all.Wait()
}
