package container

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// newHeld returns a Semaphore whose one permit is held by the container h, and the
// ids that were named.
func newHeld(t *testing.T) (*Semaphore, *[]string) {
	s, named := NewSemaphore(1), &[]string{}
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, s.Source(ended, func(id string) { *named = append(*named, id) }))
	require.True(t, s.acquire("h", false))
	return s, named
}

func TestPermitIsReserved(t *testing.T) {
	s, named := newHeld(t)
	require.False(t, s.acquire("a", false))
	require.False(t, s.acquire("a", false), "queued only once")
	s.release()
	require.Equal(t, []string{"a"}, *named)
	require.False(t, s.acquire("b", false), "it is a's")
	require.True(t, s.acquire("a", false))
	s.release()
	require.True(t, s.acquire("b", true))
	s.release()
	require.Equal(t, []string{"a", "b"}, *named)
	require.True(t, s.acquire("c", false), "nobody waits")
}

func TestStartsComeFirst(t *testing.T) {
	s, named := newHeld(t)
	for _, id := range []string{"a", "b"} {
		require.False(t, s.acquire(id, false))
	}
	for _, id := range []string{"c", "d"} {
		require.False(t, s.acquire(id, true))
	}
	for _, id := range []string{"c", "d", "a", "b"} {
		s.release()
		require.Equal(t, id, (*named)[len(*named)-1])
		require.True(t, s.acquire(id, false))
	}
}

func TestUnusedPermitIsReleased(t *testing.T) {
	s, named := newHeld(t)
	require.False(t, s.acquire("gone", true))
	require.False(t, s.acquire("b", true))
	s.release()
	require.Equal(t, []string{"gone"}, *named)
	s.leave("gone")
	require.Equal(t, []string{"gone", "b"}, *named)
	s.leave("b")
	require.True(t, s.acquire("c", true), "free again")
	require.False(t, s.acquire("d", true), "and one only")
}

// TestPermitsOfTwo: the second permit that is free does not wait until the first one is taken.
func TestPermitsOfTwo(t *testing.T) {
	s, named := NewSemaphore(2), []string{}
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, s.Source(ended, func(id string) { named = append(named, id) }))
	require.True(t, s.acquire("h", true))
	require.True(t, s.acquire("i", true))
	require.False(t, s.acquire("a", true))
	require.False(t, s.acquire("b", true))
	s.release()
	s.release()
	require.Contains(t, named, "b")
	require.True(t, s.acquire("b", true))
	require.True(t, s.acquire("a", true))
	require.False(t, s.acquire("c", true))
}

func TestSourceNamesEarlierReservations(t *testing.T) {
	s := NewSemaphore(1)
	require.True(t, s.acquire("h", true))
	require.False(t, s.acquire("a", true))
	s.release()
	var named []string
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, s.Source(ended, func(id string) { named = append(named, id) }))
	require.Equal(t, []string{"a"}, named)
}
