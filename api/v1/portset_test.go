package v1

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPortSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ports := rapid.SliceOf(rapid.IntRange(0, 65535)).Draw(t, "ports")
		gone := rapid.SliceOf(rapid.IntRange(0, 65535)).Draw(t, "gone")
		var s PortSet
		want := map[int]bool{}
		for _, p := range ports {
			s.Add(p)
			want[p] = true
		}
		for _, p := range gone {
			s.Remove(p)
			delete(want, p)
		}
		var sorted []int
		for p := range want {
			sorted = append(sorted, p)
		}
		slices.Sort(sorted)
		require.Equal(t, sorted, slices.Collect(s.All()))
		require.Equal(t, len(want), s.Len())

		b, err := json.Marshal(s)
		require.NoError(t, err)
		var again PortSet
		require.NoError(t, json.Unmarshal(b, &again))
		require.True(t, s.Equal(again) && again.Equal(s), "with or without trailing zeros")
		c := s.Clone()
		c.Add(65535)
		require.Equal(t, want[65535], c.Equal(s))
	})
}

func TestPortSetIgnoresInvalidPorts(t *testing.T) {
	var s PortSet
	s.Add(-1)
	s.Add(65536)
	s.Remove(70000)
	require.True(t, s.Equal(PortSet{}))
	require.False(t, s.Has(-1) || s.Has(65536))
	require.Error(t, json.Unmarshal([]byte(`"!"`), &s))
	require.Error(t, json.Unmarshal([]byte(`1`), &s))
}
