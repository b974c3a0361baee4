package stats_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
	"berth/controller/stats"
	"berth/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet is a set of running containers that each use half a core.
type fleet struct {
	mu      sync.Mutex
	started map[string]time.Time
	asked   map[string]int
	err     error
}

func newFleet(ids ...string) *fleet {
	f := &fleet{started: map[string]time.Time{}, asked: map[string]int{}}
	for _, id := range ids {
		f.started[id] = time.Now()
	}
	return f
}

func (f *fleet) Running(id string) (string, time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.started[id]
	return "engine-" + id, at, ok
}

func (f *fleet) RunningIDs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id := range f.started {
		ids = append(ids, id)
	}
	return ids
}

func (f *fleet) Stats(_ context.Context, containerID string) (runtime.Stats, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := strings.TrimPrefix(containerID, "engine-")
	f.asked[id]++
	return runtime.Stats{
		Read: time.Now(), CPU: time.Since(f.started[id]) / 2, Memory: 1, MemoryLimit: 2,
		NetworkRx: 3, NetworkTx: 4, BlockRead: 5, BlockWrite: 6, Pids: 7,
	}, f.err
}

func (f *fleet) stop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.started, id)
}

func (f *fleet) took() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = map[string]int{}
	return asked
}

// audience is an Audience that records the samples it receives.
type audience struct {
	mu      sync.Mutex
	ids     []string
	all     bool
	changed chan struct{}
	got     map[string][]v1.Stats
}

func (a *audience) Listened() ([]string, bool, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ids, a.all, a.changed
}

func (a *audience) Stats(id string, s v1.Stats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got[id] = append(a.got[id], s)
}

func (a *audience) listen(all bool, ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids, a.all = ids, all
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *audience) received() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := map[string]int{}
	for id, list := range a.got {
		n[id] = len(list)
	}
	a.got = map[string][]v1.Stats{}
	return n
}

func runSampler(t *testing.T, test func(t *testing.T, f *fleet, a *audience, s *stats.Sampler)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("a", "b", "c")
		a := &audience{changed: make(chan struct{}), got: map[string][]v1.Stats{}}
		s := stats.NewSampler(f, f, a, stats.Options{Disk: func(id string) (int64, bool) { return 9, id == "a" }})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { s.Run(ctx) })
		test(t, f, a, s)
		cancel()
		done.Wait()
	})
}

func TestSamplerReadsOnlyForListeners(t *testing.T) {
	runSampler(t, func(t *testing.T, f *fleet, a *audience, _ *stats.Sampler) {
		time.Sleep(time.Hour)
		require.Empty(t, f.took())
		a.listen(false, "a", "gone")
		time.Sleep(10*time.Second + 500*time.Millisecond)
		require.Equal(t, map[string]int{"a": 11}, a.received())
		require.Equal(t, map[string]int{"a": 12}, f.took())
		a.listen(true)
		time.Sleep(10 * time.Second)
		require.Equal(t, map[string]int{"a": 10, "b": 10, "c": 10}, a.received())
		f.stop("b")
		f.took()
		time.Sleep(10 * time.Second)
		require.Equal(t, map[string]int{"a": 10, "c": 10}, a.received())
		a.listen(false)
		synctest.Wait()
		f.took()
		time.Sleep(time.Hour)
		require.Empty(t, f.took())
	})
}

func TestSample(t *testing.T) {
	runSampler(t, func(t *testing.T, f *fleet, a *audience, s *stats.Sampler) {
		time.Sleep(time.Minute)
		got, err := s.Sample(t.Context(), "a")
		require.NoError(t, err)
		disk := int64(9)
		require.Equal(t, v1.Stats{
			CPUUsage: 50, MemoryUsage: 1, MemoryLimit: 2, NetworkRx: 3, NetworkTx: 4,
			BlockRead: 5, BlockWrite: 6, Pids: 7, Uptime: 60, DiskUsage: &disk,
		}, got)
		require.Equal(t, map[string]int{"a": 2}, f.took())
		_, err = s.Sample(t.Context(), "a")
		require.NoError(t, err)
		require.Empty(t, f.took(), "a fresh reading is returned again")
		time.Sleep(5 * time.Second)
		got, err = s.Sample(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, 50.0, got.CPUUsage)
		require.Equal(t, map[string]int{"a": 1}, f.took(), "there is a reading to compare with")

		got, err = s.Sample(t.Context(), "b")
		require.NoError(t, err)
		require.Nil(t, got.DiskUsage)
		_, err = s.Sample(t.Context(), "gone")
		require.ErrorIs(t, err, runtime.ErrNotRunning)
		f.err = errors.New("away")
		_, err = s.Sample(t.Context(), "c")
		require.ErrorIs(t, err, f.err)
		require.Empty(t, s.Samples(t.Context(), []string{"c"}))
	})
}

// TestFirstSamplesAtTheSameTime asks for the first sample of a container several times,
// together and shortly after each other. Each answer is that of a whole interval.
func TestFirstSamplesAtTheSameTime(t *testing.T) {
	runSampler(t, func(t *testing.T, _ *fleet, _ *audience, s *stats.Sampler) {
		time.Sleep(time.Minute)
		var asked sync.WaitGroup
		var one, list [6]float64
		for i := range one {
			asked.Go(func() {
				time.Sleep(time.Duration(i / 2)) // 1 ns is too short to measure anything
				got, _ := s.Sample(t.Context(), "a")
				one[i] = got.CPUUsage
			})
			asked.Go(func() {
				time.Sleep(time.Duration(i / 2))
				list[i] = s.Samples(t.Context(), []string{"a", "b"})["b"].CPUUsage
			})
		}
		asked.Wait()
		require.Equal(t, [6]float64{50, 50, 50, 50, 50, 50}, one)
		require.Equal(t, one, list)
	})
}

func TestSamplesTakeOneInterval(t *testing.T) {
	runSampler(t, func(t *testing.T, f *fleet, a *audience, s *stats.Sampler) {
		for i := range 100 {
			f.started[fmt.Sprint(i)] = time.Now()
		}
		time.Sleep(time.Second)
		began := time.Now()
		all := s.Samples(t.Context(), nil)
		require.Len(t, all, 103)
		require.Equal(t, 50.0, all["77"].CPUUsage)
		require.LessOrEqual(t, time.Since(began), time.Second/4)
		require.Len(t, s.Samples(t.Context(), []string{"a", "gone"}), 1)
	})
}

// BenchmarkSamples measures all of n running containers.
func BenchmarkSamples(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var ids []string
			for i := range n {
				ids = append(ids, fmt.Sprintf("c-%d", i))
			}
			f := newFleet(ids...)
			s := stats.NewSampler(f, f, &audience{}, stats.Options{})
			s.Samples(b.Context(), ids)
			var took []float64
			for range 5 {
				time.Sleep(600 * time.Millisecond) // until no reading is fresh
				began := time.Now()
				s.Samples(b.Context(), ids)
				took = append(took, time.Since(began).Seconds()*1000)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "ms/round")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func TestNewRunIsNotComparedWithOldOne(t *testing.T) {
	runSampler(t, func(t *testing.T, f *fleet, a *audience, s *stats.Sampler) {
		time.Sleep(time.Minute)
		_, err := s.Sample(t.Context(), "a")
		require.NoError(t, err)
		f.started["a"] = time.Now()
		time.Sleep(time.Second)
		got, err := s.Sample(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, 50.0, got.CPUUsage)
		require.EqualValues(t, 1, got.Uptime)
	})
}
