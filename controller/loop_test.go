package controller_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"berth/controller"
)

// script is a Reconciler that returns the answers of a test and records when it was called.
type script struct {
	mu     sync.Mutex
	began  time.Time
	at     []time.Duration
	answer func(n int, key string) (controller.Result, error)
}

func (s *script) Reconcile(_ context.Context, key string) (controller.Result, error) {
	s.mu.Lock()
	s.at = append(s.at, time.Since(s.began))
	n := len(s.at)
	s.mu.Unlock()
	return s.answer(n, key)
}

// run runs a loop inside a synctest bubble until during returns.
func run(t *testing.T, s *script, during func(watch, request func(string))) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watch, request := make(chan string), make(chan string)
	s.began = time.Now()
	l := &controller.Loop{
		Name: "test", Reconciler: s, Workers: 2,
		Signals:      []controller.Source{from(watch)},
		DesiredState: []controller.Source{from(request)},
		BackOff:      controller.BackOff{Initial: time.Second, Max: time.Minute},
		Metrics:      unread(),
		Log:          slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	during(func(k string) { watch <- k }, func(k string) { request <- k })
	cancel()
	<-done
}

func unread() *controller.Metrics { return controller.NewMetrics(prometheus.NewRegistry()) }

func from(keys <-chan string) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case k := <-keys:
				notify(k)
			}
		}
	}
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

func TestFailureIsRetriedWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(n int, _ string) (controller.Result, error) {
			if n < 5 {
				return controller.Result{}, errors.New("no")
			}
			return controller.Result{}, nil
		}}
		run(t, s, func(watch, _ func(string)) { watch("a"); time.Sleep(time.Hour) })
		require.Len(t, s.at, 5)
		for i := 2; i < 5; i++ {
			gap, before := s.at[i]-s.at[i-1], s.at[i-1]-s.at[i-2]
			require.Greater(t, gap, before, "wait %d", i)
		}
	})
}

func TestRequestResetsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(int, string) (controller.Result, error) { return controller.Result{}, errors.New("no") }}
		run(t, s, func(watch, request func(string)) {
			watch("a")
			time.Sleep(10 * time.Minute) // the delay is a minute by now
			n := s.count()
			request("a")
			time.Sleep(10 * time.Second) // at once, then after about 1, 2, 4 s
			require.GreaterOrEqual(t, s.count()-n, 3)

			time.Sleep(10 * time.Minute)
			n = s.count()
			watch("a")
			time.Sleep(10 * time.Second) // at once, then the long delay continues
			require.LessOrEqual(t, s.count()-n, 2)
			require.GreaterOrEqual(t, s.count()-n, 1)
		})
	})
}

func TestTerminalErrorWaitsForTheNextSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(int, string) (controller.Result, error) {
			return controller.Result{}, controller.Terminal(errors.New("never"))
		}}
		run(t, s, func(watch, _ func(string)) {
			watch("a")
			time.Sleep(time.Hour)
			require.Equal(t, 1, s.count())
			watch("a")
			time.Sleep(time.Second)
			require.Equal(t, 2, s.count())
		})
	})
}

func TestRequeueAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(n int, _ string) (controller.Result, error) {
			return []controller.Result{{RequeueAfter: time.Minute}, {}}[n-1], nil
		}}
		run(t, s, func(watch, _ func(string)) { watch("a"); time.Sleep(time.Hour) })
		require.Equal(t, []time.Duration{0, time.Minute}, s.at)
	})
}

func TestPanicDoesNotStopLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := 0
		s := &script{answer: func(_ int, key string) (controller.Result, error) {
			if key == "bad" {
				panic("broken record")
			}
			good++
			return controller.Result{}, nil
		}}
		run(t, s, func(watch, _ func(string)) {
			watch("bad")
			time.Sleep(5 * time.Second)
			watch("good")
			synctest.Wait()
		})
		require.Equal(t, 1, good)
	})
}

// TestPanicOfSource: a source that panics runs again.
func TestPanicOfSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began, named := 0, make(chan string, 1)
		source := func(ctx context.Context, notify func(string)) error {
			if began++; began == 1 {
				panic("broken record")
			}
			notify("a")
			<-ctx.Done()
			return nil
		}
		s := &script{began: time.Now(), answer: func(_ int, key string) (controller.Result, error) { named <- key; return controller.Result{}, nil }}
		l := &controller.Loop{Name: "test", Reconciler: s, Signals: []controller.Source{source}, BackOff: controller.BackOff{Initial: time.Second, Max: time.Minute}, Metrics: unread(), Log: slog.New(slog.DiscardHandler)}
		done := make(chan struct{})
		go func() { defer close(done); l.Run(ctx) }()
		require.Equal(t, "a", <-named)
		cancel()
		<-done
	})
}

// TestKeyIsReconciledByOneWorker signals a key while it is reconciled.
func TestKeyIsReconciledByOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, most := 0, 0
		s := &script{answer: func(int, string) (controller.Result, error) {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy--
			mu.Unlock()
			return controller.Result{}, nil
		}}
		run(t, s, func(watch, _ func(string)) {
			for range 20 {
				watch("a")
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(10 * time.Second)
		})
		require.Equal(t, 1, most)
		require.LessOrEqual(t, len(s.at), 4, "signals during a reconcile count as one")
	})
}

func TestShutdownDrainsRunningSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct{ needs, waits time.Duration }{{3 * time.Second, 3 * time.Second}, {time.Hour, 5 * time.Second}} {
			ctx, cancel := context.WithCancel(t.Context())
			finished := false
			l := &controller.Loop{Name: "t", Workers: 1, Metrics: unread(), BackOff: controller.BackOff{Initial: time.Second, Max: time.Minute},
				Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
				Signals: []controller.Source{func(ctx context.Context, notify func(string)) error {
					notify("a")
					<-ctx.Done()
					return nil
				}},
				Reconciler: reconcileFunc(func(ctx context.Context, _ string) (controller.Result, error) {
					select {
					case <-time.After(tc.needs):
						finished = true
					case <-ctx.Done():
					}
					return controller.Result{RequeueAfter: time.Millisecond}, nil
				})}
			done := make(chan struct{})
			go func() { defer close(done); l.Run(ctx) }()
			synctest.Wait()
			began := time.Now()
			cancel()
			<-done
			require.Equal(t, tc.waits, time.Since(began))
			require.Equal(t, tc.needs < time.Minute, finished)
		}
	})
}

type reconcileFunc func(context.Context, string) (controller.Result, error)

func (f reconcileFunc) Reconcile(ctx context.Context, key string) (controller.Result, error) {
	return f(ctx, key)
}

func TestFailedSourceRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		runs := 0
		l := &controller.Loop{Name: "t", Metrics: unread(), BackOff: controller.BackOff{Initial: time.Second, Max: time.Minute},
			Log:        slog.New(slog.NewTextHandler(io.Discard, nil)),
			Reconciler: reconcileFunc(func(context.Context, string) (controller.Result, error) { return controller.Result{}, nil }),
			Signals: []controller.Source{func(ctx context.Context, notify func(string)) error {
				if runs++; runs < 4 {
					return errors.New("stream ended")
				}
				<-ctx.Done()
				return nil
			}}}
		l.Run(ctx)
		require.Equal(t, 4, runs)
	})
}

func TestMetricsStartAtZeroAndCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		ctx, cancel := context.WithCancel(t.Context())
		key := make(chan string)
		l := &controller.Loop{Name: "container", Metrics: controller.NewMetrics(reg), BackOff: controller.BackOff{Initial: time.Second, Max: time.Minute},
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Signals: []controller.Source{from(key)},
			Reconciler: reconcileFunc(func(context.Context, string) (controller.Result, error) { return controller.Result{}, nil })}
		done := make(chan struct{})
		go func() { defer close(done); l.Run(ctx) }()
		synctest.Wait()
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(metricsText("0")), "berth_reconcile_total"))
		n, err := testutil.GatherAndCount(reg, "workqueue_depth", "workqueue_adds_total", "workqueue_queue_duration_seconds",
			"workqueue_work_duration_seconds", "workqueue_retries_total", "workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds")
		require.NoError(t, err)
		require.Equal(t, 7, n)
		key <- "a"
		synctest.Wait()
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(metricsText("1")), "berth_reconcile_total"))
		cancel()
		<-done
	})
}

func metricsText(settled string) string {
	return `# HELP berth_reconcile_total Reconciles, by controller and result.
# TYPE berth_reconcile_total counter
berth_reconcile_total{controller="container",result="after"} 0
berth_reconcile_total{controller="container",result="error"} 0
berth_reconcile_total{controller="container",result="settled"} ` + settled + `
berth_reconcile_total{controller="container",result="terminal"} 0
berth_reconcile_total{controller="container",result="waiting"} 0
`
}

// TestSelfSignalingKeyIsDelayed is about an engine that sends events of an object
// which it created and removed again in a failed call.
func TestSelfSignalingKeyIsDelayed(t *testing.T) {
	for name, err := range map[string]error{"failing": errors.New("no"), "terminal": controller.Terminal(errors.New("never"))} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var signal func(string)
				s := &script{answer: func(int, string) (controller.Result, error) {
					go signal("a")
					return controller.Result{}, err
				}}
				run(t, s, func(watch, _ func(string)) {
					signal = watch
					watch("a")
					time.Sleep(time.Minute)
					require.Less(t, s.count(), 30)
					require.Greater(t, s.count(), 5)
				})
			})
		})
	}
}

// TestWaitingKeepsBackOff has a key that fails, waits, and fails again each time that
// the resource it waits for is available.
func TestWaitingKeepsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed []time.Duration
		began, waited, awaited := time.Now(), false, make(chan string, 1)
		l := &controller.Loop{Name: "test", Log: slog.New(slog.DiscardHandler), Metrics: unread(), BackOff: controller.BackOff{Initial: time.Second, Max: time.Hour},
			Signals: []controller.Source{controller.Once("a")}, Awaited: []controller.Source{from(awaited)},
			Reconciler: reconcileFunc(func(context.Context, string) (controller.Result, error) {
				if waited = !waited; waited {
					awaited <- "a"
					return controller.Result{Waiting: true}, nil
				}
				failed = append(failed, time.Since(began))
				return controller.Result{}, errors.New("refused")
			})}
		ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
		defer cancel()
		l.Run(ctx)
		require.Len(t, failed, 6, "%v: 0, 1, 3, 7, 15 and 31 s", failed)
	})
}
