package event

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// emit stores n transitions, all at the same time.
func emit(t *testing.T, s *store.Store, n int, kind, data string) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *store.Tx) error {
		for i := range n {
			tx.Emit(v1.Event{Container: fmt.Sprint("c", i), Event: kind, Data: data})
		}
		return nil
	}))
}

func kept(t *testing.T, s *store.Store) (oldest, newest uint64) {
	t.Helper()
	oldest, newest = s.Read().EventBounds()
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
			settings.Store(&v1.Config{Events: v1.RetentionConfig{Retention: v1.Duration(retention), Max: most}})
		}
		set(time.Hour, 2500)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		loop := New(s, func() v1.Config { return *settings.Load() }, slog.New(slog.DiscardHandler), controller.NewMetrics(prometheus.NewRegistry()))
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

// TestClockJumps: a clock that jumps beyond the retention removes nothing until it has gone on for a day.
func TestClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		s, err := store.Open("", store.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		limit := v1.RetentionConfig{Retention: v1.Duration(48 * time.Hour), Max: 100}
		loop := New(s, func() v1.Config { return v1.Config{Events: limit, Audit: limit} }, slog.New(slog.DiscardHandler), controller.NewMetrics(prometheus.NewRegistry()))
		go func() { defer close(done); loop.Run(ctx) }()
		audited := func() (n int) {
			entries, err := store.ReadAudit(s.Read(), 0, 10, v1.AuditFilter{})
			n = len(entries)
			require.NoError(t, err)
			return n
		}
		emit(t, s, 3, v1.EventState, "ready")
		require.NoError(t, store.NewRequest(s, v1.Controller(), v1.Audit{Action: "token.create"}).Update(func(*store.Tx) error { return nil }))
		pass(time.Hour)
		ahead.Store(int64(365 * 24 * time.Hour))
		pass(time.Minute)
		emit(t, s, 1, v1.EventState, "running")
		pass(23 * time.Hour)
		oldest, _ := kept(t, s)
		require.Equal(t, uint64(1), oldest)
		require.Equal(t, 1, audited())
		pass(2 * time.Hour)
		oldest, newest := kept(t, s)
		require.Equal(t, uint64(4), oldest, "a clock that goes on for a day is right")
		require.Zero(t, audited())
		require.Equal(t, v1.ReasonSteady, last(t, s, newest).Reason)
		cancel()
		<-done
		require.NoError(t, s.Close())
	})
}

func last(t *testing.T, s *store.Store, seq uint64) (e v1.Event) {
	t.Helper()
	list, err := store.ReadEvents(s.Read(), seq-1, 1)
	e = list[0]
	require.NoError(t, err)
	return e
}
