package jobs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// world has Jobs that run, and asks for jobs as reconcilers do.
type world struct {
	t     *testing.T
	jobs  *Jobs[int]
	limit atomic.Int64
	log   strings.Builder
	stop  func() // ends Run, and waits for it

	mu    sync.Mutex
	named []string // by Source
}

func live(t *testing.T, perKey int, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.limit.Store(1)
		w.jobs = New[int](Options{Name: "test", Limit: func() int { return int(w.limit.Load()) }, PerKey: perKey, Log: slog.New(slog.NewTextHandler(&w.log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { _ = w.jobs.Run(ctx) })
		parts.Go(func() {
			_ = w.jobs.Source(ctx, func(id string) { w.mu.Lock(); w.named = append(w.named, id); w.mu.Unlock() })
		})
		w.stop = func() { cancel(); parts.Wait() }
		defer w.stop()
		synctest.Wait()
		test(w)
	})
}

// ask calls Start for a job that runs until its context or the returned channel ends.
func (w *world) ask(id, key string, urgent bool) (started bool, end func()) {
	w.t.Helper()
	done := make(chan struct{})
	started, err := w.jobs.Start(Request[int]{ID: id, Key: key, Urgent: urgent, Work: func(ctx context.Context, report func(int)) error {
		report(1)
		select {
		case <-done:
			report(2)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	require.NoError(w.t, err)
	synctest.Wait()
	return started, sync.OnceFunc(func() { close(done); synctest.Wait() })
}

func (w *world) takeNamed() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.named = nil }()
	return w.named
}

// order asks for all requests again and again, at first while another job runs, and returns
// the order in which they begin; each ends before the next one begins.
func (w *world) order(requests ...Request[int]) (began []string) {
	w.t.Helper()
	_, end := w.ask("blocker", "blocker", false)
	defer w.jobs.Forget("blocker")
	for len(began) < len(requests) {
		for _, r := range requests {
			if slices.Contains(began, r.ID) {
				continue
			}
			if started, stop := w.ask(r.ID, r.Key, r.Urgent); started {
				began, end = append(began, r.ID), stop
			}
		}
		if end != nil {
			end()
			end = nil
		}
		time.Sleep(AskAgain)
	}
	for _, id := range began {
		w.jobs.Forget(id)
	}
	return began
}

func request(id, key string) Request[int] { return Request[int]{ID: id, Key: key} }

func urgent(id, key string) Request[int] { return Request[int]{ID: id, Key: key, Urgent: true} }

func TestLifeOfAJob(t *testing.T) {
	live(t, 1, func(w *world) {
		require.Equal(t, Job[int]{}, w.jobs.Get("a"))
		started, end := w.ask("a", "k", false)
		require.True(t, started)
		require.Equal(t, Job[int]{State: Running, Value: 1}, w.jobs.Get("a"))
		require.Equal(t, 1, w.jobs.Running())
		require.Empty(t, w.takeNamed())
		again, _ := w.ask("a", "k", false)
		require.False(t, again, "it runs")
		end()
		require.Equal(t, []string{"a"}, w.takeNamed())
		require.Equal(t, Job[int]{State: Ended, Value: 2}, w.jobs.Get("a"))
		require.Zero(t, w.jobs.Running())
		again, _ = w.ask("a", "k", false)
		require.False(t, again, "its result was not collected")
		w.jobs.Forget("a")
		require.Equal(t, Job[int]{}, w.jobs.Get("a"))
		again, _ = w.ask("a", "k", false)
		require.True(t, again)
	})
}

// TestOrderIsThatOfTheFirstRequest: also if a later one asks more often.
func TestOrderIsThatOfTheFirstRequest(t *testing.T) {
	live(t, 1, func(w *world) {
		_, end := w.ask("first", "k", false)
		for range 3 {
			for _, id := range []string{"a", "b", "b", "c"} {
				started, _ := w.ask(id, id, false)
				require.False(t, started)
			}
			time.Sleep(AskAgain)
		}
		end()
		require.Equal(t, []string{"first", "a"}, w.takeNamed())
		started, _ := w.ask("b", "b", false)
		require.False(t, started, "it is a's turn")
		started, end = w.ask("a", "a", false)
		require.True(t, started)
		require.Empty(t, w.takeNamed(), "there is one permit")
		w.limit.Store(2)
		end()
		require.Equal(t, []string{"a", "b"}, w.takeNamed())
		started, _ = w.ask("b", "b", false)
		require.True(t, started)
		require.Equal(t, []string{"c"}, w.takeNamed(), "there is another permit")
	})
}

// TestKeysTakeTurns: many requests of one key delay another one by one job.
func TestKeysTakeTurns(t *testing.T) {
	live(t, 1, func(w *world) {
		require.Equal(t, []string{"a1", "b", "c", "a2", "a3"},
			w.order(request("a1", "a"), request("a2", "a"), request("a3", "a"), request("b", "b"), request("c", "c")))
		require.Equal(t, []string{"r", "b", "a1", "a2"}, w.order(request("a1", "a"), request("a2", "a"), request("b", "b"), urgent("r", "a")))
	})
}

// TestUrgentJobsStarveNoOthers: two keys with an urgent job each, again and again.
func TestUrgentJobsStarveNoOthers(t *testing.T) {
	live(t, 1, func(w *world) {
		var began []string
		for range 10 {
			var end func()
			for _, r := range []Request[int]{urgent("restore a", "a"), urgent("restore b", "b"), request("backup c", "c"), request("backup d", "d")} {
				if started, stop := w.ask(r.ID, r.Key, r.Urgent); started {
					began, end = append(began, r.ID), stop
				}
			}
			end()
			w.jobs.Forget(began[len(began)-1])
			time.Sleep(AskAgain)
		}
		require.Equal(t, []string{"restore a", "restore b", "restore a", "backup c", "restore b", "restore a", "backup d", "restore b", "restore a", "backup c"}, began)
	})
}

// TestPlaceIsLost: a request that does not ask again stops no other.
func TestPlaceIsLost(t *testing.T) {
	live(t, 1, func(w *world) {
		_, end := w.ask("runs", "k", false)
		w.ask("gone", "gone", true)
		w.ask("waits", "waits", false)
		end()
		started, _ := w.ask("waits", "waits", false)
		require.False(t, started)
		time.Sleep(queuedFor + time.Second)
		started, end = w.ask("waits", "waits", false)
		require.True(t, started)
		started, _ = w.ask("gone", "gone", true)
		require.False(t, started, "it has a new place")
		w.ask("last", "last", false)
		w.takeNamed()
		w.jobs.Forget("gone")
		end()
		require.Equal(t, []string{"waits", "last"}, w.takeNamed())
	})
}

// TestJobsOfAKey: a key has a number of jobs, and stops no other.
func TestJobsOfAKey(t *testing.T) {
	live(t, 2, func(w *world) {
		w.limit.Store(4)
		_, end := w.ask("a1", "a", false)
		for id, want := range map[string]bool{"a2": true} {
			started, _ := w.ask(id, "a", false)
			require.Equal(t, want, started)
		}
		started, _ := w.ask("a3", "a", false)
		require.False(t, started)
		started, _ = w.ask("b", "b", false)
		require.True(t, started)
		end()
		require.Equal(t, []string{"a1", "a3"}, w.takeNamed())
	})
}

func TestCancel(t *testing.T) {
	live(t, 1, func(w *world) {
		w.ask("a", "k", false)
		w.jobs.Cancel("none")
		w.jobs.Cancel("a")
		synctest.Wait()
		got := w.jobs.Get("a")
		require.Equal(t, Ended, got.State)
		require.ErrorIs(t, got.Err, context.Canceled)
		w.jobs.Forget("a")

		w.ask("b", "k", false)
		w.jobs.Forget("b")
		require.Equal(t, Running, w.jobs.Get("b").State, "it has not ended")
	})
}

// TestRecordComesFirst: a job whose record fails, or panics, does not begin and has no permit.
func TestRecordComesFirst(t *testing.T) {
	live(t, 1, func(w *world) {
		broken := errors.New("broken")
		never := func(context.Context, func(int)) error { t.Error("it began"); return nil }
		started, err := w.jobs.Start(Request[int]{ID: "a", Work: never, Record: func() error { return broken }})
		require.ErrorIs(t, err, broken)
		require.False(t, started)
		require.Equal(t, None, w.jobs.Get("a").State)
		require.Panics(t, func() {
			_, _ = w.jobs.Start(Request[int]{ID: "a", Work: never, Record: func() error { panic("broken") }})
		})
		require.Zero(t, w.jobs.Running())

		started, err = w.jobs.Start(Request[int]{ID: "a", Record: func() error { w.jobs.Cancel("a"); return nil },
			Work: func(ctx context.Context, _ func(int)) error { return ctx.Err() }})
		require.NoError(t, err)
		require.True(t, started)
		synctest.Wait()
		require.ErrorIs(t, w.jobs.Get("a").Err, context.Canceled, "cancelled before it began")
	})
}

func TestPanicIsAnError(t *testing.T) {
	live(t, 1, func(w *world) {
		_, err := w.jobs.Start(Request[int]{ID: "a", Work: func(_ context.Context, report func(int)) error { report(7); panic("broken archive") }})
		require.NoError(t, err)
		synctest.Wait()
		got := w.jobs.Get("a")
		require.Equal(t, Ended, got.State)
		require.Equal(t, 7, got.Value)
		require.ErrorContains(t, got.Err, "broken archive")
		require.Contains(t, w.log.String(), "jobs_test.go", "the stack")
		w.jobs.Forget("a")
		started, _ := w.ask("b", "k", false)
		require.True(t, started, "the permit is free")
	})
}

// TestPanicWhileLent: a job that panics while its permit is lent leaves no second one.
func TestPanicWhileLent(t *testing.T) {
	live(t, 1, func(w *world) {
		started, err := w.jobs.Start(Request[int]{ID: "a", Work: func(ctx context.Context, _ func(int)) error {
			return w.jobs.Lend(ctx, time.Minute, func() error { time.Sleep(time.Hour); panic("broken volume") })
		}})
		require.NoError(t, err)
		require.True(t, started)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.ErrorContains(t, w.jobs.Get("a").Err, "broken volume")
		started, _ = w.ask("b", "b", false)
		require.True(t, started)
		started, _ = w.ask("c", "c", false)
		require.False(t, started)
	})
}

// TestEndOfRun: it waits for the jobs, and nobody takes their interruption for a result.
func TestEndOfRun(t *testing.T) {
	live(t, 1, func(w *world) {
		ended := false
		_, err := w.jobs.Start(Request[int]{ID: "a", Work: func(ctx context.Context, _ func(int)) error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			ended = true
			return ctx.Err()
		}})
		require.NoError(t, err)
		synctest.Wait()
		w.stop()
		require.True(t, ended)
		require.Equal(t, Running, w.jobs.Get("a").State)
		require.Empty(t, w.named)
		started, _ := w.ask("b", "k", false)
		require.False(t, started)
	})
}

// TestSourceNamesWhatItMissed: what has ended, and what may begin.
func TestSourceNamesWhatItMissed(t *testing.T) {
	live(t, 1, func(w *world) {
		_, end := w.ask("a", "k", false)
		w.ask("b", "k", false)
		end()
		var missed []string
		ctx, cancel := context.WithCancel(w.t.Context())
		cancel()
		require.NoError(t, w.jobs.Source(ctx, func(id string) { missed = append(missed, id) }))
		require.Equal(t, []string{"a", "b"}, missed)
		require.Len(t, w.jobs.sources, 1)
	})
}

// TestManyAtOnce: the limits hold whatever asks at once.
func TestManyAtOnce(t *testing.T) {
	const limit, perKey, ids = 5, 2, 200
	live(t, perKey, func(w *world) {
		w.limit.Store(limit)
		var mu sync.Mutex
		running, of, done := 0, map[string]int{}, 0
		work := func(key string) func(context.Context, func(int)) error {
			count := func(n int) {
				mu.Lock()
				defer mu.Unlock()
				running, of[key] = running+n, of[key]+n
				if running > limit || of[key] > perKey {
					t.Errorf("%d jobs run, %d of %s", running, of[key], key)
				}
			}
			return func(_ context.Context, report func(int)) error {
				count(1)
				report(1)
				time.Sleep(time.Second)
				count(-1)
				return nil
			}
		}
		var askers sync.WaitGroup
		for i := range ids {
			key := strconv.Itoa(i % 7)
			id := key + "-" + strconv.Itoa(i)
			askers.Go(func() {
				for w.jobs.Get(id).State != Ended {
					if _, err := w.jobs.Start(Request[int]{ID: id, Key: key, Urgent: key == "0", Work: work(key)}); err != nil {
						t.Error(err)
					}
					time.Sleep(AskAgain)
				}
				w.jobs.Forget(id)
				mu.Lock()
				defer mu.Unlock()
				done++
			})
		}
		askers.Wait()
		require.Equal(t, ids, done)
		require.Zero(t, w.jobs.Running())
		require.Empty(t, w.jobs.waiting)
	})
}

// TestLentPermit: a job that waits for long lends its permit, and goes on before those that have not begun; a
// quick one keeps it.
func TestLentPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := New[string](Options{Name: "job", Limit: func() int { return 1 }, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { _ = j.Run(ctx) })
		synctest.Wait()
		quick, slow, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var order []string
		start := func(id string, work func(ctx context.Context) error) bool {
			started, err := j.Start(Request[string]{ID: id, Key: id, Work: func(ctx context.Context, _ func(string)) error {
				err := work(ctx)
				order = append(order, id)
				return err
			}})
			require.NoError(t, err)
			synctest.Wait()
			return started
		}
		wait := func(done chan struct{}) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				return j.Lend(ctx, time.Minute, func() error { <-done; return nil })
			}
		}
		works := func(context.Context) error { <-end; return nil }
		require.True(t, start("quick", wait(quick)))
		time.Sleep(59 * time.Second)
		require.False(t, start("second", works))
		j.Forget("second")
		close(quick)
		synctest.Wait()
		require.Equal(t, Ended, j.Get("quick").State)
		require.True(t, start("slow", wait(slow)))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.True(t, start("second", works), "the slow one has lent its permit")
		require.False(t, start("third", works))
		close(slow)
		synctest.Wait()
		require.Equal(t, Running, j.Get("slow").State, "it waits for its permit")
		end <- struct{}{}
		synctest.Wait()
		require.Equal(t, []string{"quick", "second", "slow"}, order)
		require.True(t, start("third", works))

		never := make(chan struct{})
		require.False(t, start("cancelled", wait(never)))
		end <- struct{}{}
		synctest.Wait()
		require.True(t, start("cancelled", wait(never)))
		time.Sleep(time.Minute)
		synctest.Wait()
		close(end)
		require.True(t, start("other", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
		close(never)
		synctest.Wait()
		j.Cancel("cancelled")
		synctest.Wait()
		require.Equal(t, Ended, j.Get("cancelled").State)
		require.Zero(t, j.lent)
		require.False(t, start("last", works), "one permit is in use")
		j.Cancel("other")
		synctest.Wait()
		require.True(t, start("last", works))
		cancel()
		parts.Wait()
	})
}
