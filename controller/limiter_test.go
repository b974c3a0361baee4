package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/controller"
)

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

func TestEndlessRequeueIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(int, string) (controller.Result, error) { return controller.Result{Requeue: true}, nil }}
		run(t, s, func(watch, _ func(string)) {
			watch("a")
			time.Sleep(time.Minute)
			require.Less(t, s.count(), 60)
		})
	})
}

// TestWaitingKeepsBackOff has a key that fails, waits, and fails again each time that
// the resource it waits for is available.
func TestWaitingKeepsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed []time.Duration
		began, waited, awaited := time.Now(), false, make(chan string, 1)
		l := &controller.Loop{Name: "test", Log: slog.New(slog.DiscardHandler), BackOff: controller.BackOff(time.Second, time.Hour),
			Watch: []controller.Source{controller.Once("a")}, Awaited: []controller.Source{from(awaited)},
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
