package event

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// counted runs a counter in a bubble of synctest.
func counted(t *testing.T, before, during func(s *store.Store), want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		before(s)
		reg := prometheus.NewRegistry()
		c, err := NewCounter(s, reg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		during(s)
		synctest.Wait()
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP berth_events_total Stored transitions, by the state of a container, or daemon_message, backup, restore or pull.
# TYPE berth_events_total counter
`+want)))
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, s.Close())
	})
}

const others = `
berth_events_total{event="restore"} 0
berth_events_total{event="deleting"} 0
berth_events_total{event="exit"} 0
berth_events_total{event="failed"} 0
berth_events_total{event="installing"} 0
berth_events_total{event="ready"} 0
berth_events_total{event="starting"} 0
berth_events_total{event="stopping"} 0
`

func TestCounterCountsByState(t *testing.T) {
	counted(t, func(s *store.Store) { emit(t, s, 5, v1.EventState, "running") }, func(s *store.Store) {
		emit(t, s, 2, v1.EventState, "running")
		emit(t, s, 3, v1.EventMessage, "running")
		emit(t, s, 1, v1.EventBackup, "running")
		emit(t, s, 2, v1.EventPull, "completed")
		emit(t, s, 1, v1.EventState, "anything else")
	}, others+`
berth_events_total{event="running"} 2
berth_events_total{event="daemon_message"} 3
berth_events_total{event="backup"} 1
berth_events_total{event="pull"} 2
berth_events_total{event="other"} 1
`)
}

func TestCounterStartsWithEmptyLog(t *testing.T) {
	trim := func(s *store.Store) {
		emit(t, s, 5000, v1.EventState, "running")
		_, err := s.TrimEvents(time.Now().Add(time.Hour), 0)
		require.NoError(t, err)
	}
	counted(t, trim, func(s *store.Store) { emit(t, s, 1, v1.EventState, "running") }, others+`
berth_events_total{event="running"} 1
berth_events_total{event="daemon_message"} 0
berth_events_total{event="backup"} 0
berth_events_total{event="pull"} 0
`)
}

func TestCounterSkipsTrimmedTransitions(t *testing.T) {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	defer s.Close()
	c, err := NewCounter(s, prometheus.NewRegistry())
	require.NoError(t, err)
	emit(t, s, 5000, v1.EventState, "running")
	_, err = s.TrimEvents(time.Time{}, 10)
	require.NoError(t, err)
	require.ErrorIs(t, c.count(t.Context()), store.ErrCompacted)
	require.NoError(t, c.skip())
	require.Equal(t, uint64(4990), c.seen)
	_, err = s.TrimEvents(time.Now().Add(time.Hour), 0)
	require.NoError(t, err)
	require.NoError(t, c.skip())
	require.Equal(t, uint64(5000), c.seen)
}

func TestCounterEndsWithStore(t *testing.T) {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	c, err := NewCounter(s, prometheus.NewRegistry())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.ErrorIs(t, c.Run(t.Context()), store.ErrClosed)
}
