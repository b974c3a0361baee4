package stream_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

func emit(t *testing.T, s *store.Store, state v1.Phase) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *store.Tx) error {
		store.Emit(tx, v1.Event{Container: "mc", Event: v1.EventState, Data: string(state)})
		return nil
	}))
}

func TestPumpPublishesStoredTransitions(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		emit(t, s, v1.Installing)
		h := stream.New(dir, stream.Options{})
		early, err := h.Listen("mc")
		require.NoError(t, err)
		defer early.Close()

		ctx, cancel := context.WithCancel(t.Context())
		var pump sync.WaitGroup
		pump.Go(func() {
			if err := h.Pump(ctx, s); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		_, err = early.Next(t.Context())
		require.ErrorIs(t, err, stream.ErrSlow, "it may have missed some")

		l, err := h.Listen("mc")
		require.NoError(t, err)
		defer l.Close()
		emit(t, s, v1.Ready)
		emit(t, s, v1.Starting)
		for seq := uint64(2); seq <= 3; {
			for _, m := range next(t, l) {
				require.Equal(t, seq, m.Seq)
				seq++
			}
		}
		cancel()
		pump.Wait()
		require.NoError(t, s.Close())
		require.ErrorIs(t, h.Pump(t.Context(), s), store.ErrClosed)
	})
}
