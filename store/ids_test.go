package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestListedScansOnce lists a kind again and again, as the sources of all controllers
// do, between changes: only the first list scans.
func TestListedScansOnce(t *testing.T) {
	s := openIn(t, t.TempDir())
	for i := range 20 {
		require.NoError(t, create(s, fmt.Sprint("c-", i)))
	}
	list := Containers.Lister(s)
	same := func() {
		t.Helper()
		ids, err := list()
		require.NoError(t, err)
		require.NoError(t, s.View(func(tx *Tx) error {
			require.Equal(t, Containers.IDs(tx), ids)
			return nil
		}))
	}
	same()
	kept, found := s.ids.Load("container")
	require.True(t, found)
	p, scans := kept.(*Projection[v1.ContainerSpec, v1.ContainerStatus, struct{}]), 0
	all := p.all
	p.all = func(tx *Tx) ([]Projected[struct{}], error) { scans++; return all(tx) }

	same()
	require.NoError(t, create(s, "c"))
	require.NoError(t, setPhase(s, "c-7", v1.Ready))
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "c-9") }))
	require.NoError(t, s.Update(func(tx *Tx) error { return tx.set("container/c-3/spec", []byte("{cut")) }))
	same()
	require.NoError(t, setPhase(s, "c-7", v1.Running))
	same()
	require.Zero(t, scans)
	ids, err := Volumes.Lister(s)()
	require.NoError(t, err)
	require.Empty(t, ids, "each kind has its own list")
}
