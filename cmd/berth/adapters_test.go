package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// TestUnreadyStore: GET /readyz needs no token, so it logs no failure of the store.
func TestUnreadyStore(t *testing.T) {
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	var log bytes.Buffer
	d := &daemon{store: s, log: slog.New(slog.NewTextHandler(&log, nil))}
	require.NotContains(t, d.unready(), "store: not writable")
	require.NoError(t, s.Close())
	require.Contains(t, d.unready(), "store: not writable")
	require.Empty(t, log.String())
}

func TestStoreReason(t *testing.T) {
	require.Equal(t, "store: the disk is full", storeReason(fmt.Errorf("%w: %w", store.ErrFailed, store.ErrDiskFull)))
	require.Equal(t, "store: not writable", storeReason(store.ErrFailed))
}

func TestRefusal(t *testing.T) {
	require.ErrorIs(t, refusal(fmt.Errorf("input: %w", runtime.ErrNotFound)), v1.ErrNotRunning)
	require.ErrorIs(t, refusal(fmt.Errorf("input: %w", runtime.ErrUnavailable)), v1.ErrEngineUnavailable)
	require.ErrorIs(t, refusal(fmt.Errorf("input: %w", context.DeadlineExceeded)), v1.ErrEngineUnavailable)
	require.NoError(t, refusal(nil))
}
