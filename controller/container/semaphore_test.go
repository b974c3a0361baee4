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
	require.True(t, s.acquire("h", CreateServer))
	return s, named
}

func TestPermitIsReserved(t *testing.T) {
	s, named := newHeld(t)
	require.False(t, s.acquire("a", CreateServer))
	require.False(t, s.acquire("a", CreateServer), "queued only once")
	s.release()
	require.Equal(t, []string{"a"}, *named)
	require.False(t, s.acquire("b", StartServer), "it is a's")
	require.True(t, s.acquire("a", CreateServer))
	s.release()
	require.True(t, s.acquire("b", StartServer))
	s.release()
	require.Equal(t, []string{"a", "b"}, *named)
	require.True(t, s.acquire("c", CreateServer), "nobody waits")
}

func TestStartsComeFirst(t *testing.T) {
	s, named := newHeld(t)
	for _, id := range []string{"a", "b"} {
		require.False(t, s.acquire(id, FinishInstall))
	}
	for _, id := range []string{"c", "d"} {
		require.False(t, s.acquire(id, StartServer))
	}
	for _, id := range []string{"c", "d", "a", "b"} {
		s.release()
		require.Equal(t, id, (*named)[len(*named)-1])
		require.True(t, s.acquire(id, CreateServer))
	}
}

func TestUnusedPermitIsReleased(t *testing.T) {
	s, named := newHeld(t)
	require.False(t, s.acquire("gone", StartServer))
	require.False(t, s.acquire("b", StartServer))
	s.release()
	s.releaseUnused("b") // for which none is kept
	require.Equal(t, []string{"gone"}, *named)
	s.releaseUnused("gone")
	require.Equal(t, []string{"gone", "b"}, *named)
	s.releaseUnused("b")
	require.True(t, s.acquire("c", StartServer), "free again")
	require.False(t, s.acquire("d", StartServer), "and one only")
}

func TestSourceNamesEarlierReservations(t *testing.T) {
	s := NewSemaphore(1)
	require.True(t, s.acquire("h", StartServer))
	require.False(t, s.acquire("a", StartServer))
	s.release()
	var named []string
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, s.Source(ended, func(id string) { named = append(named, id) }))
	require.Equal(t, []string{"a"}, named)
}
