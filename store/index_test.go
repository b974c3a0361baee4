package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestSpecIndexFollowsEveryChange(t *testing.T) {
	s := openIn(t, t.TempDir())
	use := func(id, volume string) func(*Tx) error {
		return func(tx *Tx) error {
			return Containers.SetSpec(tx, id, func(c *v1.ContainerSpec) error { c.VolumeID = volume; return nil })
		}
	}
	users := func(volume string) (ids []string) {
		require.NoError(t, s.View(func(tx *Tx) error { ids = Containers.IDsBy(tx, volume); return nil }))
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

	require.NoError(t, s.Update(func(tx *Tx) error { return tx.set("container/b/spec", []byte("{}\n{cut")) }))
	require.Equal(t, []string{"b"}, users("v2"), "also one that cannot be read")
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "b") }))
	require.Empty(t, users("v2"))
}

func TestStatusIndexFollowsEveryChange(t *testing.T) {
	s := openIn(t, t.TempDir())
	status := func(change func(*v1.ContainerStatus)) {
		require.NoError(t, s.Update(func(tx *Tx) error { return Containers.SetStatus(tx, "a", change) }))
	}
	holders := func(volume string) (ids []string) {
		require.NoError(t, s.View(func(tx *Tx) error { ids = VolumeHolders(tx, volume); return nil }))
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

	key := statusIndex(Containers.kind()).key("v2", "a")
	require.NoError(t, s.Update(func(tx *Tx) error { return tx.remove(key) }))
	status(func(st *v1.ContainerStatus) { st.Message = "of an older version's record" })
	require.Equal(t, []string{"a"}, holders("v2"))

	require.NoError(t, s.Update(func(tx *Tx) error { return tx.set("container/a/status", []byte("{}\n{cut")) }))
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "a") }))
	require.Empty(t, holders("v2"))
}
