package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestUIDOfObjectsOfOlderVersions reads an object without a UID: it is derived, the
// same each time, and stored with the next change of the spec.
func TestUIDOfObjectsOfOlderVersions(t *testing.T) {
	s, err := Open("", Options{})
	require.NoError(t, err)
	defer s.Close()
	write := func(created string) {
		require.NoError(t, s.Update(func(tx *Tx) error {
			return tx.set("container/mc/spec", []byte(`{"id":"mc","generation":1,"revision":1,"created_at":"`+created+`"}`+"\n{}"))
		}))
	}
	uid := func() (uid string) {
		require.NoError(t, s.View(func(tx *Tx) error {
			o, err := Containers.Get(tx, "mc")
			uid = o.Meta.UID
			return err
		}))
		return uid
	}
	write("2026-01-02T03:04:05.000000007Z")
	first := uid()
	require.NotEmpty(t, first)
	require.Equal(t, first, uid())
	require.NoError(t, s.Update(func(tx *Tx) error {
		return Containers.SetSpec(tx, "mc", func(spec *v1.ContainerSpec) error { spec.Image = "i"; return nil })
	}))
	require.Equal(t, first, uid())
	write("2026-01-02T03:04:05.000000008Z")
	require.NotEqual(t, first, uid(), "another creation")
}
