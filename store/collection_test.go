package store

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	v1 "berth/api/v1"
)

// modelled is the expected state of a volume.
type modelled struct {
	meta   v1.Meta
	spec   v1.VolumeSpec
	status v1.VolumeStatus
}

// model does the same as the store, in maps.
type model struct {
	s       *Store
	now     time.Time
	rev     uint64
	objects map[string]*modelled
	uids    map[string]bool // of every creation
}

// step runs change on the store, and same on the model if change should succeed and
// changes something, which raises the revision.
func (m *model) step(t *rapid.T, want error, changes bool, change func(*Tx) error, same func()) {
	m.now = m.now.Add(time.Second)
	err := m.s.Update(change)
	require.ErrorIs(t, err, want)
	if want == nil && changes {
		m.rev++
		same()
	}
	require.Equal(t, m.rev, m.s.Revision())
}

func (m *model) touch(o *modelled) { o.meta.Revision, o.meta.UpdatedAt = m.rev, m.now }

func missing(o *modelled) error {
	if o == nil {
		return ErrNotFound
	}
	return nil
}

var modelIDs = rapid.SampledFrom([]string{"a", "a-b", "a.b", "b", "ab", "z"})

func (m *model) Create(t *rapid.T) {
	id, spec := modelIDs.Draw(t, "id"), v1.VolumeSpec{SizeLimit: rapid.Int64Range(0, 2).Draw(t, "limit")}
	var want error
	if m.objects[id] != nil {
		want = ErrExists
	}
	m.step(t, want, true, func(tx *Tx) error { return Volumes.Create(tx, id, spec) }, func() {
		o := &modelled{meta: v1.Meta{ID: id, Generation: 1, Created: m.rev, CreatedAt: m.now}, spec: spec}
		m.touch(o)
		m.objects[id] = o
	})
}

func (m *model) SetSpec(t *rapid.T) {
	id, limit := modelIDs.Draw(t, "id"), rapid.Int64Range(0, 2).Draw(t, "limit")
	o := m.objects[id]
	change := func(spec *v1.VolumeSpec) error { spec.SizeLimit = limit; return nil }
	m.step(t, missing(o), o != nil && o.spec.SizeLimit != limit, func(tx *Tx) error { return Volumes.SetSpec(tx, id, change) }, func() {
		o.spec.SizeLimit = limit
		o.meta.Generation++
		m.touch(o)
	})
}

func (m *model) SetStatus(t *rapid.T) {
	id, size := modelIDs.Draw(t, "id"), rapid.Int64Range(0, 2).Draw(t, "size")
	o := m.objects[id]
	change := func(status *v1.VolumeStatus) { status.Size = size }
	m.step(t, missing(o), o != nil && o.status.Size != size, func(tx *Tx) error { return Volumes.SetStatus(tx, id, change) }, func() {
		o.status.Size = size
		m.touch(o)
	})
}

func (m *model) Delete(t *rapid.T) {
	id := modelIDs.Draw(t, "id")
	o := m.objects[id]
	m.step(t, missing(o), o != nil && !o.meta.Deleted, func(tx *Tx) error { return Volumes.Delete(tx, id) }, func() {
		o.meta.Deleted = true
		m.touch(o)
	})
}

func (m *model) Purge(t *rapid.T) {
	id := modelIDs.Draw(t, "id")
	m.step(t, nil, m.objects[id] != nil, func(tx *Tx) error { return Volumes.Purge(tx, id) }, func() { delete(m.objects, id) })
}

func (m *model) FailAfterwards(t *rapid.T) {
	broken := errors.New("broken")
	m.step(t, broken, false, func(tx *Tx) error {
		for _, id := range Volumes.IDs(tx) {
			require.NoError(t, Volumes.Purge(tx, id))
		}
		require.Empty(t, Volumes.IDs(tx), "an update sees its own writes")
		require.NoError(t, Volumes.Create(tx, "new", v1.VolumeSpec{}))
		require.Equal(t, []string{"new"}, Volumes.IDs(tx))
		return broken
	}, nil)
}

// learnUIDs reads the UIDs of objects that are new. No two creations have the same.
func (m *model) learnUIDs(t *rapid.T) {
	tx := m.s.Read()
	for id, o := range m.objects {
		stored, err := Volumes.Get(tx, id)
		require.NoError(t, err)
		if o.meta.UID != "" {
			continue
		}
		require.NoError(t, uuid.Validate(stored.Meta.UID))
		require.False(t, m.uids[stored.Meta.UID])
		o.meta.UID, m.uids[stored.Meta.UID] = stored.Meta.UID, true
	}
}

// Check compares everything. rapid calls it after each step.
func (m *model) Check(t *rapid.T) {
	m.learnUIDs(t)
	var want []v1.Volume
	for _, o := range m.objects {
		want = append(want, v1.Volume{Meta: o.meta, Spec: o.spec, Status: o.status})
	}
	slices.SortFunc(want, func(a, b v1.Volume) int { return strings.Compare(a.Meta.ID, b.Meta.ID) })
	compare := func(tx *Tx) error {
		require.Empty(t, cmp.Diff(want, Volumes.List(tx)))
		var ids []string
		for _, o := range want {
			ids = append(ids, o.Meta.ID)
			got, err := Volumes.Get(tx, o.Meta.ID)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(o, got))
		}
		require.Equal(t, ids, Volumes.IDs(tx))
		own := slices.DeleteFunc(ids, func(id string) bool { return id[0] != 'a' })
		require.ElementsMatch(t, own, Volumes.IDsBeginning(tx, "a"))
		return nil
	}
	require.NoError(t, compare(m.s.Read()))
	require.NoError(t, m.s.Update(compare))
}

func TestCollectionAgainstModel(t *testing.T) {
	m := &model{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var err error
	m.s, err = Open("", Options{Now: func() time.Time { return m.now }})
	require.NoError(t, err)
	defer m.s.Close()
	rapid.Check(t, func(t *rapid.T) {
		require.NoError(t, m.s.Update(func(tx *Tx) error {
			for _, id := range Volumes.IDs(tx) {
				require.NoError(t, Volumes.Purge(tx, id))
			}
			return nil
		}))
		m.rev, m.objects, m.uids = m.s.Revision(), map[string]*modelled{}, map[string]bool{}
		actions := rapid.StateMachineActions(m)
		actions[""] = m.Check
		delete(actions, "Check")
		t.Repeat(actions)
	})
}

func TestUpdateSeesItsOwnWrites(t *testing.T) {
	s := openIn(t, "")
	require.NoError(t, s.Update(func(tx *Tx) error {
		require.NoError(t, Containers.Create(tx, "a", v1.ContainerSpec{Image: "one"}))
		require.NoError(t, Containers.SetSpec(tx, "a", func(c *v1.ContainerSpec) error { c.Image = "two"; return nil }))
		o, err := Containers.Get(tx, "a")
		require.NoError(t, err)
		require.Equal(t, "two", o.Spec.Image)
		require.EqualValues(t, 2, o.Meta.Generation)
		require.Equal(t, tx.Revision(), o.Meta.Revision)
		return nil
	}))
	require.EqualValues(t, 1, s.Revision())
	for _, id := range []string{"", "a/b"} {
		require.Error(t, create(s, id))
	}
	require.Error(t, Containers.Create(s.Read(), "b", v1.ContainerSpec{}))
	refused := errors.New("refused")
	err := s.Update(func(tx *Tx) error {
		return Containers.SetSpec(tx, "a", func(c *v1.ContainerSpec) error { c.Image = "three"; return refused })
	})
	require.ErrorIs(t, err, refused)
	_, err = Containers.Await(t.Context(), s, "none", func(v1.Container) bool { return true })
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "container none: not found")
}

func TestBatchReadsItsWritesNotTheCache(t *testing.T) {
	s := openIn(t, "")
	require.NoError(t, create(s, "a"))
	var seen []string
	read := func(tx *Tx) error {
		o, err := Containers.Get(tx, "a")
		seen = append(seen, o.Spec.Image, Containers.List(tx)[0].Spec.Image)
		return err
	}
	change := func(to string) func(tx *Tx) error {
		return func(tx *Tx) error {
			return Containers.SetSpec(tx, "a", func(c *v1.ContainerSpec) error { c.Image = to; return nil })
		}
	}
	require.NoError(t, s.Update(change("one")))
	require.NoError(t, read(s.Read())) // caches the record, at the version that the next batch reads
	for _, err := range together(t, s, read, change("two"), read) {
		require.NoError(t, err)
	}
	require.NoError(t, read(s.Read()))
	require.Equal(t, []string{"one", "one", "one", "one", "two", "two", "two", "two"}, seen)
}

func TestDamagedObjectDoesNotAffectOthers(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, create(s, id))
		require.NoError(t, s.Update(func(tx *Tx) error {
			tx.Emit(v1.Event{Container: id})
			return Containers.SetStatus(tx, id, func(st *v1.ContainerStatus) { st.Phase = v1.Ready })
		}))
	}
	damage(t, s, map[string]string{"container/b/spec": "{}\n{cut", "container/c/status": "nothing", eventLog.key(2): "{cut"})
	s, err = Open(dir, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer s.Close()
	{
		tx := s.Read()
		list := Containers.List(tx)
		require.Len(t, list, 1)
		require.Equal(t, "a", list[0].Meta.ID)
		require.Equal(t, []string{"a", "b", "c"}, Containers.IDs(tx))
		for _, id := range []string{"b", "c"} {
			_, err = Containers.Get(tx, id)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, "container "+id)
		}
		events, err := ReadEvents(tx, 0, 10)
		require.NoError(t, err)
		require.Len(t, events, 3)
		require.EqualValues(t, 2, events[1].Seq)
	}
	require.Contains(t, log.String(), "cannot read an object")
	require.NoError(t, s.Update(func(tx *Tx) error {
		require.ErrorIs(t, Containers.Create(tx, "b", v1.ContainerSpec{}), ErrExists)
		require.ErrorIs(t, Containers.Delete(tx, "b"), ErrDamaged)
		require.ErrorIs(t, Containers.SetSpec(tx, "b", func(*v1.ContainerSpec) error { return nil }), ErrDamaged)
		require.ErrorIs(t, Containers.SetStatus(tx, "c", func(*v1.ContainerStatus) {}), ErrDamaged)
		require.NoError(t, Containers.Delete(tx, "c"), "its spec is not damaged")
		return errors.Join(Containers.Purge(tx, "b"), Containers.Purge(tx, "c"))
	}))
	require.Equal(t, []string{"a"}, ids(t, s))
}

// damage writes values into the keys of a store, and closes it.
func damage(t *testing.T, s *Store, values map[string]string) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *Tx) error {
		for key, value := range values {
			if err := tx.write(key, []byte(value)); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, s.Close())
}

// TestReadsShareNothingWithWriters: what a view has read does not change, whatever an update or
// its caller does with what it has given to the store.
func TestReadsShareNothingWithWriters(t *testing.T) {
	s := openIn(t, "")
	env := map[string]string{"A": "1"}
	require.NoError(t, s.Update(func(tx *Tx) error {
		return Containers.Create(tx, "a", v1.ContainerSpec{Env: env})
	}))
	env["A"] = "2"
	get := func() (o v1.Container) {
		o, err := Containers.Get(s.Read(), "a")
		require.NoError(t, err)
		return o
	}
	before := get()
	var kept *v1.ContainerSpec
	require.NoError(t, s.Update(func(tx *Tx) error {
		return Containers.SetSpec(tx, "a", func(c *v1.ContainerSpec) error { c.Env["A"] = "3"; kept = c; return nil })
	}))
	kept.Env["A"] = "4"
	require.Equal(t, []string{"1", "3"}, []string{before.Spec.Env["A"], get().Spec.Env["A"]})
}

// TestMemoryIsWhatIsStored: an object has the same times and values before and after a restart.
func TestMemoryIsWhatIsStored(t *testing.T) {
	now := time.Now()
	dir, o := t.TempDir(), Options{Now: func() time.Time { return now }}
	s, err := Open(dir, o)
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	require.NoError(t, setPhase(s, "a", v1.Ready))
	now = now.Add(-time.Hour) // the clock was wrong
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Delete(tx, "a") }))
	require.NoError(t, s.Update(func(tx *Tx) error {
		return Containers.SetStatus(tx, "a", func(st *v1.ContainerStatus) { st.Conditions = []v1.Condition{{Since: time.Now()}} })
	}))
	list := func() (list []v1.Container) {
		list = Containers.List(s.Read())
		return list
	}
	before := list()
	require.NoError(t, s.Close())
	s = openIn(t, dir)
	require.Equal(t, before, list())
}

// TestStatusKeepsASpecOfItsChange: the change of a status may change the spec of the same object.
func TestStatusKeepsASpecOfItsChange(t *testing.T) {
	s := openIn(t, t.TempDir())
	require.NoError(t, s.Update(func(tx *Tx) error { return Volumes.Create(tx, "v", v1.VolumeSpec{}) }))
	require.NoError(t, s.Update(func(tx *Tx) (err error) {
		return errors.Join(Volumes.SetStatus(tx, "v", func(st *v1.VolumeStatus) {
			st.Size = 2
			err = Volumes.SetSpec(tx, "v", func(spec *v1.VolumeSpec) error { spec.SizeLimit = 1; return nil })
		}), err)
	}))
	v, err := Volumes.Get(s.Read(), "v")
	require.Equal(t, []int64{1, 2}, []int64{v.Spec.SizeLimit, v.Status.Size})
	require.NoError(t, err)
}
