package download_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/download"
	"berth/hack/test/storetest"
	"berth/store"
)

// web downloads from memory: each URL waits until its result is there.
type web struct {
	mu      sync.Mutex
	running map[string]int // by volume
	most    int            // of one volume at once
	total   int            // at once
	results map[string]chan error
}

func (w *web) result(url string) chan error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.results[url] == nil {
		w.results[url] = make(chan error, 1)
	}
	return w.results[url]
}

func (w *web) count(volume string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[volume] += n
	w.most = max(w.most, w.running[volume])
	all := 0
	for _, k := range w.running {
		all += k
	}
	w.total = max(w.total, all)
}

func (w *web) fetch(ctx context.Context, spec v1.PullSpec, progress func(bytes, total int64)) error {
	w.count(spec.VolumeID, 1)
	defer func() { w.count(spec.VolumeID, -1) }()
	progress(5, 10)
	select {
	case err := <-w.result(spec.URL):
		if err == nil {
			progress(10, 10)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type world struct {
	t     *testing.T
	store *store.Store
	web   *web
	stop  func()
	back  atomic.Int64 // by which the host's clock was set back, a time.Duration
}

func live(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		s, err := store.Open("", store.Options{Now: func() time.Time { return time.Now().Add(-time.Duration(w.back.Load())) }})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		w.store, w.web = s, &web{running: map[string]int{}, results: map[string]chan error{}}
		w.run()
		defer func() { w.stop() }()
		test(w)
	})
}

// run starts the controller as the daemon does; stop ends it.
func (w *world) run() {
	log := slog.New(slog.DiscardHandler)
	jobs := download.NewJobs(log)
	loop := &controller.Loop{Name: "download", Workers: 2, Log: log, Metrics: controller.NewMetrics(prometheus.NewRegistry()), BackOff: controller.BackOff{Initial: time.Second, Max: time.Minute},
		Reconciler:   &download.Reconciler{Store: w.store, Fetch: w.web.fetch, Jobs: jobs, Metrics: download.NewMetrics(prometheus.NewRegistry(), jobs), Log: log},
		DesiredState: []controller.Source{store.Pulls.Source(w.store, store.SpecChanged, store.Purged)},
		Signals:      []controller.Source{jobs.Source, controller.Every(time.Minute, store.Pulls.Lister(w.store))}}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { loop.Run(ctx) })
	all.Go(func() { _ = jobs.Run(ctx) })
	w.stop = func() { cancel(); all.Wait() }
}

func (w *world) update(change func(tx *store.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(change))
}

func (w *world) volume(id string) {
	w.update(func(tx *store.Tx) error { return store.Volumes.Create(tx, id, v1.VolumeSpec{}) })
}

// pull requests a download, whose id is its URL.
func (w *world) pull(volume, id string) {
	w.update(func(tx *store.Tx) error {
		return store.Pulls.Create(tx, id, v1.PullSpec{VolumeID: volume, PullRequest: v1.PullRequest{URL: id, Path: "f"}})
	})
}

func (w *world) get(id string) (v1.Pull, error) { return store.Pulls.Get(w.store.Read(), id) }

func (w *world) want(id string, state v1.PullState) v1.PullStatus {
	w.t.Helper()
	time.Sleep(3 * time.Second)
	synctest.Wait()
	p, err := w.get(id)
	require.NoError(w.t, err)
	require.Equal(w.t, state, p.Status.State, p.Status.Message)
	return p.Status
}

func TestLife(t *testing.T) {
	live(t, func(w *world) {
		w.volume("v")
		w.pull("v", "good")
		s := w.want("good", v1.PullRunning)
		require.Equal(t, []int64{5, 10}, []int64{s.Bytes, *s.Total})
		w.web.result("good") <- nil
		s = w.want("good", v1.PullCompleted)
		require.Equal(t, int64(10), s.Bytes)
		require.NotNil(t, s.FinishedAt)

		w.pull("v", "bad")
		w.web.result("bad") <- errors.New("the server answered 404")
		require.Equal(t, "the server answered 404", w.want("bad", v1.PullFailed).Message)
		w.pull("v", "large")
		w.web.result("large") <- fmt.Errorf("write: %w", v1.ErrSizeLimit)
		require.Equal(t, "Volume size limit exceeded", w.want("large", v1.PullFailed).Message)
	})
}

func TestCancel(t *testing.T) {
	live(t, func(w *world) {
		w.volume("v")
		for _, id := range []string{"a", "b", "waits"} {
			w.pull("v", id)
			time.Sleep(time.Second)
		}
		require.Empty(t, w.want("waits", "").Message, "two at once per volume")
		cancel := func(spec *v1.PullSpec) error { spec.Cancel = true; return nil }
		w.update(func(tx *store.Tx) error {
			return errors.Join(store.Pulls.SetSpec(tx, "waits", cancel), store.Pulls.SetSpec(tx, "a", cancel))
		})
		w.want("waits", v1.PullCancelled)
		w.want("a", v1.PullCancelled)
		w.want("b", v1.PullRunning)
		w.web.result("b") <- nil
		w.want("b", v1.PullCompleted)
	})
}

func TestPermits(t *testing.T) {
	live(t, func(w *world) {
		for v := range 10 {
			w.volume(fmt.Sprint("v", v))
			for i := range 4 {
				w.pull(fmt.Sprint("v", v), fmt.Sprint(v, "-", i))
			}
		}
		time.Sleep(5 * time.Second)
		for v := range 10 {
			for i := range 4 {
				w.web.result(fmt.Sprint(v, "-", i)) <- nil
			}
		}
		time.Sleep(time.Minute)
		for v := range 10 {
			for i := range 4 {
				w.want(fmt.Sprint(v, "-", i), v1.PullCompleted)
			}
		}
		require.LessOrEqual(t, w.web.most, 2)
		require.Equal(t, 8, w.web.total, "with eight volumes or more, whichever begin first")
	})
}

// TestRestart: a download begins again after a restart, three times at most.
func TestRestart(t *testing.T) {
	live(t, func(w *world) {
		w.volume("v")
		w.pull("v", "a")
		w.pull("v", "b")
		for attempt := 1; attempt <= 3; attempt++ {
			require.Equal(t, attempt, w.want("a", v1.PullRunning).Attempts)
			if attempt == 2 {
				w.web.result("b") <- nil
				w.want("b", v1.PullCompleted)
			}
			w.stop()
			w.run()
		}
		require.Contains(t, w.want("a", v1.PullFailed).Message, "restarted")
		w.want("b", v1.PullCompleted)
	})
}

// TestRestoreOfVolume: a download waits for the end of a restore of its volume, whether
// it was requested before or runs. Neither is an attempt.
func TestRestoreOfVolume(t *testing.T) {
	live(t, func(w *world) {
		w.volume("v")
		w.pull("v", "runs")
		w.want("runs", v1.PullRunning)
		w.update(func(tx *store.Tx) error {
			return store.BeginRestore(tx, "r", v1.RestoreSpec{RestoreRequest: v1.RestoreRequest{VolumeID: "v"}})
		})
		w.web.result("runs") <- fmt.Errorf("write: %w", v1.ErrVolumeRestoring)
		w.pull("v", "waits")
		time.Sleep(time.Hour)
		for _, id := range []string{"runs", "waits"} {
			p, err := w.get(id)
			require.NoError(t, err)
			require.Equal(t, v1.PullPending, cmp.Or(p.Status.State, v1.PullPending), id)
			require.Zero(t, p.Status.Attempts, id)
		}
		require.Zero(t, w.web.running["v"], "no server is asked during the restore")
		w.stop()
		w.run()
		w.update(func(tx *store.Tx) error { return store.EndRestore(tx, "r", "v") })
		for _, id := range []string{"runs", "waits"} {
			require.Equal(t, 1, w.want(id, v1.PullRunning).Attempts)
			w.web.result(id) <- nil
			w.want(id, v1.PullCompleted)
		}
	})
}

// TestRestoreAfterRestart: a download that berth's end interrupted waits as well.
func TestRestoreAfterRestart(t *testing.T) {
	live(t, func(w *world) {
		w.volume("v")
		w.pull("v", "a")
		w.want("a", v1.PullRunning)
		w.stop()
		w.update(func(tx *store.Tx) error {
			return store.BeginRestore(tx, "r", v1.RestoreSpec{RestoreRequest: v1.RestoreRequest{VolumeID: "v"}})
		})
		w.run()
		w.want("a", v1.PullPending)
		w.update(func(tx *store.Tx) error { return store.EndRestore(tx, "r", "v") })
		require.Equal(t, 2, w.want("a", v1.PullRunning).Attempts)
	})
}

func TestVolumeGone(t *testing.T) {
	live(t, func(w *world) {
		w.volume("v")
		w.pull("v", "runs")
		w.pull("v", "done")
		w.web.result("done") <- nil
		w.want("done", v1.PullCompleted)
		w.want("runs", v1.PullRunning)
		w.update(func(tx *store.Tx) error { return store.Volumes.Delete(tx, "v") })
		time.Sleep(2 * time.Minute)
		for _, id := range []string{"runs", "done"} {
			_, err := w.get(id)
			require.ErrorIs(t, err, store.ErrNotFound, id)
		}
		require.Zero(t, w.web.running["v"])
	})
}

func TestLastHundredStay(t *testing.T) {
	live(t, func(w *world) {
		w.volume("v")
		for i := range 105 {
			id := fmt.Sprintf("p%03d", i)
			w.pull("v", id)
			w.web.result(id) <- nil
			time.Sleep(3 * time.Second)
			w.back.Add(int64(time.Minute)) // the last ones are those that were created last
		}
		_, err := w.get("p004")
		require.ErrorIs(t, err, store.ErrNotFound)
		w.want("p005", v1.PullCompleted)
		w.want("p104", v1.PullCompleted)
	})
}

// TestDamagedDownload: one whose record cannot be read does not stop the others of its volume.
func TestDamagedDownload(t *testing.T) {
	live(t, func(w *world) {
		w.volume("v")
		w.update(func(tx *store.Tx) error {
			return errors.Join(store.Pulls.Create(tx, "damaged", v1.PullSpec{VolumeID: "v"}), storetest.Damage(tx, "pull", "damaged"))
		})
		w.pull("v", "good")
		w.want("good", v1.PullRunning)
		w.web.result("good") <- nil
		w.want("good", v1.PullCompleted)
	})
}
