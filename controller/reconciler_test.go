package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"berth/controller"
)

func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, calls, failed := slog.New(slog.DiscardHandler), 0, errors.New("failed")
		err := controller.Persist(t.Context(), log, "work", func(context.Context) error {
			if calls++; calls < 4 {
				panic("bad")
			}
			return failed
		})
		require.Equal(t, failed, err)
		require.Equal(t, 4, calls)

		ctx, cancel := context.WithCancel(t.Context())
		err = controller.Persist(ctx, log, "work", func(context.Context) error { cancel(); panic("bad") })
		require.ErrorIs(t, err, controller.ErrPanic)
	})
}
