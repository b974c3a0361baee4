package store

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestAfterHasOrderOfList: also for ids that extend another one by a character that
// sorts before the slash of a key.
func TestAfterHasOrderOfList(t *testing.T) {
	s := openIn(t, t.TempDir())
	random := rand.New(rand.NewPCG(1, 1))
	var ids []string
	require.NoError(t, s.Update(func(tx *Tx) error {
		for range 300 {
			id := "a"
			for range random.IntN(5) {
				id += string("ab-._9Z"[random.IntN(7)])
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
				require.NoError(t, Volumes.Create(tx, id, v1.VolumeSpec{}))
			}
		}
		return nil
	}))
	slices.Sort(ids)
	for _, after := range append([]string{"", "a-", "a-b.", "zz"}, ids...) {
		want := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id <= after })
		for _, n := range []int{1, 3, len(ids)} {
			var got []string
			for o := range Volumes.After(s.Read(), after) {
				if got = append(got, o.Meta.ID); len(got) == n {
					break
				}
			}
			require.Equal(t, slices.Clone(want[:min(n, len(want))]), append([]string{}, got...), "after %q", after)
		}
	}
}

func TestEach(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Update(func(tx *Tx) error {
		for _, id := range []string{"a", "b", "damaged"} {
			require.NoError(t, Volumes.Create(tx, id, v1.VolumeSpec{}))
		}
		return nil
	}))
	damage(t, s, map[string]string{"volume/damaged/spec": "{"})
	s = openIn(t, dir)
	tx := s.Read()
	for _, list := range [][]string{{}, {"a"}, {"a", "b"}} {
		got := []string{}
		for o := range Volumes.Each(tx, append([]string{"damaged", "missing"}, append(list, "damaged")...)) {
			got = append(got, o.Meta.ID)
		}
		require.Equal(t, list, got)
	}
	for range Volumes.Each(tx, []string{"a", "b"}) {
		break
	}
}
