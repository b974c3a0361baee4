package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func version(t *testing.T, s *Store) (v uint64) {
	require.NoError(t, s.View(func(tx *Tx) (err error) {
		v, err = tx.number(schemaKey)
		return err
	}))
	return v
}

func TestMigrationsRunInOrderAndOnce(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.EqualValues(t, len(migrations)+1, version(t, s))
	require.NoError(t, create(s, "a"))
	id := s.ID()
	require.NoError(t, s.Close())

	var ran []string
	cut := errors.New("cut off")
	step := func(name string, result error) migration {
		return func(s *Store) error {
			ran = append(ran, name)
			return errors.Join(s.Update(func(tx *Tx) error {
				return Containers.SetSpec(tx, "a", func(c *v1.ContainerSpec) error { c.Image += name; return nil })
			}), result)
		}
	}
	_, err = open(dir, Options{}, []migration{step("2", nil), step("3", cut), step("4", nil)})
	require.ErrorIs(t, err, cut)
	require.ErrorContains(t, err, "migrate from version 2")
	s, err = open(dir, Options{}, []migration{step("2", nil), step("3", nil), step("4", nil)})
	require.NoError(t, err)
	require.EqualValues(t, 4, version(t, s))
	require.Equal(t, id, s.ID())
	require.Equal(t, []string{"2", "3", "3", "4"}, ran, "the one that was cut off runs again")
	require.NoError(t, s.View(func(tx *Tx) error {
		o, err := Containers.Get(tx, "a")
		require.Equal(t, "image:a2334", o.Spec.Image)
		return err
	}))
	require.NoError(t, s.Close())

	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrNewer)
	require.ErrorContains(t, err, "start the newer one")
}

func TestNewStoreNeedsNoMigration(t *testing.T) {
	s, err := open(t.TempDir(), Options{}, []migration{func(*Store) error { return errors.New("must not run") }})
	require.NoError(t, err)
	require.EqualValues(t, 2, version(t, s))
	require.NoError(t, s.Close())
}
