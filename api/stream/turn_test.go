package stream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// read takes the turn, reads for a time, and returns how long it waited.
func read(t *testing.T, readers turn, d time.Duration) time.Duration {
	t.Helper()
	asked := time.Now()
	due, err := readers.take(t.Context())
	require.NoError(t, err)
	began := time.Now()
	time.Sleep(d)
	readers.leave(due, began)
	return began.Sub(asked)
}

func TestTurnGivesAShareOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readers := newTurn()
		for range 25 {
			require.Zero(t, read(t, readers, 10*time.Millisecond), "the burst")
		}
		began := time.Now()
		for range 100 {
			read(t, readers, 10*time.Millisecond)
		}
		require.InDelta(t, 4, time.Since(began).Seconds(), 0.1, "1 s of reading takes 4 s")
		time.Sleep(time.Minute)
		for range 25 {
			require.Zero(t, read(t, readers, 10*time.Millisecond), "after a pause")
		}
	})
}

func TestTurnEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readers := newTurn()
		read(t, readers, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := readers.take(ctx)
		require.ErrorIs(t, err, ErrBusy)
		require.Greater(t, read(t, readers, 0), 2*time.Minute, "who gave up changed nothing")
		require.Zero(t, read(t, readers, 0))
	})
}
