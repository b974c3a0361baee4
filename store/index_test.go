package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestSpecIndexFollowsEveryChange(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	use := func(id, volume string) func(*Tx) error {
		return func(tx *Tx) error {
			return Containers.SetSpec(tx, id, func(c *v1.ContainerSpec) error { c.VolumeID = volume; return nil })
		}
	}
	users := func(volume string) (ids []string) {
		ids = Containers.IDsBy(s.Read(), volume)
		return ids
	}
	for _, id := range []string{"b", "a", "c"} {
		require.NoError(t, s.Update(func(tx *Tx) error {
			defer func() { require.Contains(t, Containers.IDsBy(tx, "v1"), id, "also within the update") }()
			return Containers.Create(tx, id, v1.ContainerSpec{VolumeID: "v1"})
		}))
	}
	require.Equal(t, []string{"a", "b", "c"}, users("v1"))
	require.NoError(t, s.Update(use("b", "v2")))
	require.NoError(t, s.Update(use("c", "")))
	require.Equal(t, []string{"a"}, users("v1"))
	require.Equal(t, []string{"b"}, users("v2"))
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Delete(tx, "a") }))
	require.Equal(t, []string{"a"}, users("v1"), "a container that is being deleted still uses its volume")
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "a") }))
	require.Empty(t, users("v1"))

	require.NoError(t, s.Update(use("c", "v2")))
	damage(t, s, map[string]string{"container/b/status": "{}\n{cut", "container/c/spec": "{}\n{cut"})
	s = openIn(t, dir)
	require.Equal(t, []string{"b"}, users("v2"), "also one whose status cannot be read")
	require.NoError(t, s.Update(func(tx *Tx) error { return errors.Join(Containers.Purge(tx, "b"), Containers.Purge(tx, "c")) }))
	require.Empty(t, users("v2"))
	s.state.Load().rows.Ascend(func(r row) bool {
		require.False(t, strings.HasPrefix(r.key, "index/"), "nothing is left in an index: %s", r.key)
		return true
	})
}

func TestStatusIndexFollowsEveryChange(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	status := func(change func(*v1.ContainerStatus)) {
		require.NoError(t, s.Update(func(tx *Tx) error { return Containers.SetStatus(tx, "a", change) }))
	}
	holders := func(volume string) (ids []string) {
		ids = VolumeHolders(s.Read(), volume)
		return ids
	}
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Create(tx, "a", v1.ContainerSpec{VolumeID: "v3"}) }))
	status(func(st *v1.ContainerStatus) { st.InstallVolume, st.StartedInstall = "v1", 1 })
	require.Equal(t, []string{"a"}, holders("v1"))
	status(func(st *v1.ContainerStatus) { st.ServerVolume, st.InstallID, st.ObservedInstall = "v2", "x", 1 })
	require.Equal(t, []string{"a"}, holders("v1"), "the installer still exists")
	require.Equal(t, []string{"a"}, holders("v2"))
	status(func(st *v1.ContainerStatus) { st.InstallID = "" })
	require.Empty(t, holders("v1"))
	require.Empty(t, holders("v3"), "the spec is in another index")

	require.NoError(t, s.Close())
	s = openIn(t, dir)
	require.Equal(t, []string{"a"}, holders("v2"), "after a restart")
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "a") }))
	require.Empty(t, holders("v2"))
}
