package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/controller"
)

// slow is a Reconciler that takes a second for each step and records the order.
type slow struct {
	mu    sync.Mutex
	order []string
	steps map[string]int
}

func (s *slow) Reconcile(_ context.Context, key string) (controller.Result, error) {
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, key)
	if s.steps[key]--; s.steps[key] > 0 {
		return controller.Result{Requeue: true}, nil
	}
	return controller.Result{}, nil
}

// keys returns the keys of the steps until now, in their order.
func (s *slow) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

// names returns a source that names n keys at once.
func names(n int) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		for i := range n {
			notify(fmt.Sprintf("r-%d", i))
		}
		<-ctx.Done()
		return nil
	}
}

func runLoop(t *testing.T, r controller.Reconciler, watch, request controller.Source) {
	ctx, cancel := context.WithCancel(t.Context())
	l := &controller.Loop{Name: "x", Reconciler: r, Watch: []controller.Source{watch}, DesiredState: []controller.Source{request},
		Workers: 1, BackOff: controller.BackOff(time.Second, time.Minute), Log: slog.New(slog.DiscardHandler)}
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func TestKillOvertakesResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &slow{steps: map[string]int{"kill": 3, "r-900": 1}}
		runLoop(t, r, names(1000), func(ctx context.Context, notify func(string)) error {
			time.Sleep(1500 * time.Millisecond)
			notify("kill")
			notify("r-900") // one that is queued already
			<-ctx.Done()
			return nil
		})
		time.Sleep(7 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"r-0", "r-1", "kill", "r-900", "kill", "kill"}, r.keys()[:6], "each of its steps overtakes the resync")
	})
}

func TestRequestsDoNotStarveResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &slow{steps: map[string]int{}}
		runLoop(t, r, names(5), func(ctx context.Context, notify func(string)) error {
			for i := 0; ctx.Err() == nil; i++ {
				notify(fmt.Sprintf("w-%d", i))
				time.Sleep(500 * time.Millisecond)
			}
			return nil
		})
		time.Sleep(60 * time.Second)
		synctest.Wait()
		seen := map[string]int{}
		for _, key := range r.keys() {
			seen[key]++
		}
		for i := range 5 {
			require.Equal(t, 1, seen[fmt.Sprintf("r-%d", i)])
		}
		require.Greater(t, seen["w-40"], 0)
	})
}
