package stream_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

func emit(t *testing.T, s *store.Store, state v1.Phase) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *store.Tx) error {
		tx.Emit(v1.Event{Container: "mc", Event: v1.EventState, Data: string(state)})
		return nil
	}))
}

func TestRunPublishesStoredTransitions(t *testing.T) {
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
		var running sync.WaitGroup
		running.Go(func() {
			if err := h.Run(ctx, s); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		_, err = take(t.Context(), early)
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
		running.Wait()
		require.NoError(t, s.Close())
		require.ErrorIs(t, h.Run(t.Context(), s), store.ErrClosed)
	})
}

// TestRunCountsByState counts the transitions that are stored while the hub runs.
func TestRunCountsByState(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		emit(t, s, v1.Running)
		registry := prometheus.NewRegistry()
		h := stream.New(dir, stream.Options{Registerer: registry})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Run(ctx, s) }()
		synctest.Wait()
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			for kind, states := range map[string][]string{v1.EventState: {"running", "running", "anything else"}, v1.EventMessage: {"running"}, v1.EventPull: {"completed"}} {
				for _, state := range states {
					tx.Emit(v1.Event{Container: "mc", Event: kind, Data: state})
				}
			}
			return nil
		}))
		synctest.Wait()
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP berth_events_total Stored transitions, by the state of a container, or daemon_message, backup, restore, pull, schedule or transfer.
# TYPE berth_events_total counter
berth_events_total{event="backup"} 0
berth_events_total{event="daemon_message"} 1
berth_events_total{event="deleting"} 0
berth_events_total{event="exit"} 0
berth_events_total{event="failed"} 0
berth_events_total{event="installing"} 0
berth_events_total{event="other"} 1
berth_events_total{event="pull"} 1
berth_events_total{event="ready"} 0
berth_events_total{event="restore"} 0
berth_events_total{event="running"} 2
berth_events_total{event="schedule"} 0
berth_events_total{event="starting"} 0
berth_events_total{event="stopping"} 0
berth_events_total{event="transfer"} 0
`), "berth_events_total"))
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, s.Close())
	})
}
