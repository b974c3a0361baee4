package controller_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/controller"
)

// TestAKeyWhoseAttemptsCauseItsSignalsDoesNotSpin: an engine that tells of the
// object that it made and removed again in a failed call.
func TestAKeyWhoseAttemptsCauseItsSignalsDoesNotSpin(t *testing.T) {
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

func TestGoingRoundInCirclesIsBraked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(int, string) (controller.Result, error) { return controller.Result{Again: true}, nil }}
		run(t, s, func(watch, _ func(string)) {
			watch("a")
			time.Sleep(time.Minute)
			require.Less(t, s.count(), 60)
		})
	})
}
