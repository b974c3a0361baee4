package volume

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func TestConfigSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newConfigSlot()
		leave, err := s.enter(t.Context(), smallConfig+1)
		require.NoError(t, err)
		began := time.Now()
		small, err := s.enter(t.Context(), smallConfig)
		require.NoError(t, err)
		small()
		require.Zero(t, time.Since(began), "a small file does not wait")
		_, err = s.enter(t.Context(), smallConfig+1)
		require.ErrorIs(t, err, runtime.ErrConfigBusy)
		require.Equal(t, configWait, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.enter(ctx, smallConfig+1)
		require.ErrorIs(t, err, runtime.ErrConfigBusy)
		time.AfterFunc(time.Second, leave)
		leave, err = s.enter(t.Context(), smallConfig+1)
		require.NoError(t, err)
		leave()
	})
}
