package controller_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/controller"
)

// feed runs a loop whose only source fails after each of the durations in lives. It
// returns the delays between two runs of the source.
func feed(t *testing.T, lives ...time.Duration) (waits []time.Duration) {
	t.Helper()
	return feedLogged(t, slog.DiscardHandler, lives...)
}

func feedLogged(t *testing.T, log slog.Handler, lives ...time.Duration) (waits []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var ended time.Time
		source := func(ctx context.Context, _ func(string)) error {
			if !ended.IsZero() {
				waits = append(waits, time.Since(ended))
			}
			if len(lives) == 0 {
				cancel()
				return nil
			}
			time.Sleep(lives[0])
			lives, ended = lives[1:], time.Now()
			return errors.New("the stream has ended")
		}
		l := &controller.Loop{
			Name: "test", Reconciler: &script{}, Signals: []controller.Source{source},
			BackOff: controller.BackOff{Initial: time.Second, Max: 5 * time.Minute}, Metrics: unread(), Log: slog.New(log),
		}
		l.Run(ctx)
	})
	return waits
}

// An engine that is away for an hour does not fill the log: consecutive failures are
// logged more and more seldom, with their number. A source that worked begins anew.
func TestFailedSourceIsLoggedSeldom(t *testing.T) {
	var log bytes.Buffer
	lives := make([]time.Duration, 700)
	lives[690] = time.Minute
	feedLogged(t, slog.NewTextHandler(&log, nil), lives...)
	require.Equal(t, 10+4, strings.Count(log.String(), "event source failed"))
	require.Contains(t, log.String(), "failures=512")
	require.Equal(t, 2, strings.Count(log.String(), "failures=8 "))
}

// An engine that is unreachable for long is still asked every few seconds.
func TestFailedSourceRetriesSoon(t *testing.T) {
	waits := feed(t, make([]time.Duration, 50)...)
	require.Less(t, waits[0], 150*time.Millisecond)
	for _, wait := range waits {
		require.LessOrEqual(t, wait, 6*time.Second, "5 s and a fifth of it")
	}
	require.Greater(t, waits[49], 3*time.Second, "but not in a tight loop")
}

// A proxy that cuts each stream after 30 s causes only a short delay each time.
func TestWorkingSourceRetriesAtOnce(t *testing.T) {
	lives := make([]time.Duration, 50)
	for i := range lives {
		lives[i] = 30 * time.Second
	}
	for _, wait := range feed(t, lives...) {
		require.Less(t, wait, 150*time.Millisecond)
	}
}

func TestResyncIsSpreadOverPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		at := map[string][]time.Duration{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = controller.Every(time.Minute, func() ([]string, error) { return []string{"a", "b", "c", "d"}, nil })(
				ctx, func(key string) { at[key] = append(at[key], time.Since(began)) })
		}()
		time.Sleep(2*time.Minute - time.Second)
		cancel()
		<-done
		require.Equal(t, map[string][]time.Duration{
			"a": {0, 60 * time.Second}, "b": {15 * time.Second, 75 * time.Second},
			"c": {30 * time.Second, 90 * time.Second}, "d": {45 * time.Second, 105 * time.Second},
		}, at)
	})
}
