package container

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// row is one slot, held by the container h, and what was named.
func row(t *testing.T) (*Slots, *[]string) {
	s, named := NewSlots(1), &[]string{}
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, s.Source(ended, func(id string) { *named = append(*named, id) }))
	require.True(t, s.take("h", MakeServer))
	return s, named
}

func TestASlotIsKeptForWhomItIsGivenTo(t *testing.T) {
	s, named := row(t)
	require.False(t, s.take("a", MakeServer))
	require.False(t, s.take("a", MakeServer), "one place each")
	s.give()
	require.Equal(t, []string{"a"}, *named)
	require.False(t, s.take("b", StartServer), "it is a's")
	require.True(t, s.take("a", MakeServer))
	s.give()
	require.True(t, s.take("b", StartServer))
	s.give()
	require.Equal(t, []string{"a", "b"}, *named)
	require.True(t, s.take("c", MakeServer), "nobody waits")
}

func TestWhatCanStartComesFirst(t *testing.T) {
	s, named := row(t)
	for _, id := range []string{"a", "b"} {
		require.False(t, s.take(id, FinishInstall))
	}
	for _, id := range []string{"c", "d"} {
		require.False(t, s.take(id, StartServer))
	}
	for _, id := range []string{"c", "d", "a", "b"} {
		s.give()
		require.Equal(t, id, (*named)[len(*named)-1])
		require.True(t, s.take(id, MakeServer))
	}
}

func TestASlotThatIsNotTakenIsPassedOn(t *testing.T) {
	s, named := row(t)
	require.False(t, s.take("gone", StartServer))
	require.False(t, s.take("b", StartServer))
	s.give()
	s.pass("b") // for which none is kept
	require.Equal(t, []string{"gone"}, *named)
	s.pass("gone")
	require.Equal(t, []string{"gone", "b"}, *named)
	s.pass("b")
	require.True(t, s.take("c", StartServer), "free again")
	require.False(t, s.take("d", StartServer), "and one only")
}

func TestWhoIsNamedBeforeTheSourceRunsIsToldThen(t *testing.T) {
	s := NewSlots(1)
	require.True(t, s.take("h", StartServer))
	require.False(t, s.take("a", StartServer))
	s.give()
	var named []string
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, s.Source(ended, func(id string) { named = append(named, id) }))
	require.Equal(t, []string{"a"}, named)
}
