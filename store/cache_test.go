package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestReadsReturnClones(t *testing.T) {
	s := openIn(t, "")
	require.NoError(t, s.Update(func(tx *Tx) error {
		return Containers.Create(tx, "a", v1.ContainerSpec{Env: map[string]string{"A": "1"}})
	}))
	for range 3 {
		require.NoError(t, s.View(func(tx *Tx) error {
			o, err := Containers.Get(tx, "a")
			require.NoError(t, err)
			require.Equal(t, "1", o.Spec.Env["A"])
			o.Spec.Env["A"] = "2"
			list, err := Containers.List(tx)
			require.NoError(t, err)
			require.Equal(t, "1", list[0].Spec.Env["A"])
			list[0].Spec.Env["A"] = "3"
			return nil
		}))
	}
	require.Len(t, s.cache.records, 1)
	require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, "a") }))
	require.Empty(t, s.cache.records)
}
