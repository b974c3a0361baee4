package event

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
	"berth/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// emit stores n transitions, all at the same time.
func emit(t *testing.T, s *store.Store, n int, kind, data string) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *store.Tx) error {
		for i := range n {
			store.Emit(tx, v1.Event{Container: fmt.Sprint("c", i), Event: kind, Data: data})
		}
		return nil
	}))
}

func kept(t *testing.T, s *store.Store) (oldest, newest uint64) {
	t.Helper()
	require.NoError(t, s.View(func(tx *store.Tx) error {
		oldest, newest = store.EventRange(tx)
		return nil
	}))
	return oldest, newest
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestTrimByAgeAndCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		var settings atomic.Pointer[v1.Config]
		set := func(retention time.Duration, most int) {
			settings.Store(&v1.Config{Events: v1.EventsConfig{Retention: v1.Duration(retention), Max: most}})
		}
		set(time.Hour, 2500)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		loop := New(s, func() v1.Config { return *settings.Load() }, slog.New(slog.DiscardHandler), nil)
		go func() { defer close(done); loop.Run(ctx) }()

		emit(t, s, 3000, v1.EventState, "ready")
		pass(61 * time.Second)
		oldest, newest := kept(t, s)
		require.Equal(t, []uint64{501, 3000}, []uint64{oldest, newest}, "the maximum applies")

		set(time.Hour, 1000)
		pass(time.Minute)
		oldest, _ = kept(t, s)
		require.Equal(t, uint64(2001), oldest, "a changed setting applies")

		pass(57 * time.Minute)
		emit(t, s, 1, v1.EventState, "ready")
		pass(3 * time.Minute)
		oldest, newest = kept(t, s)
		require.Equal(t, []uint64{3001, 3001}, []uint64{oldest, newest}, "the retention applies")

		cancel()
		<-done
		require.NoError(t, s.Close())
	})
}

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
# HELP berth_events_total Stored transitions, by state or daemon_message.
# TYPE berth_events_total counter
`+want)))
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, s.Close())
	})
}

const others = `
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
		emit(t, s, 1, v1.EventState, "anything else")
	}, others+`
berth_events_total{event="running"} 2
berth_events_total{event="daemon_message"} 3
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
