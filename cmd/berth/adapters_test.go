package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
)

func TestRefusal(t *testing.T) {
	require.ErrorIs(t, refusal(fmt.Errorf("input: %w", runtime.ErrNotFound)), v1.ErrNotRunning)
	require.ErrorIs(t, refusal(fmt.Errorf("input: %w", runtime.ErrUnavailable)), v1.ErrEngineUnavailable)
	require.ErrorIs(t, refusal(fmt.Errorf("input: %w", runtime.ErrLost)), v1.ErrEngineUnavailable)
	require.ErrorIs(t, refusal(fmt.Errorf("input: %w", context.DeadlineExceeded)), v1.ErrEngineUnavailable)
	require.NoError(t, refusal(nil))
}
