package docker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCancelledCallsAreNotCounted(t *testing.T) {
	c := newCalls(nil, newMetrics(nil))
	left, cancel := context.WithCancel(t.Context())
	cancel()
	c.record(left, opInspect, time.Second, context.DeadlineExceeded)
	_, silent := c.unanswered()
	require.False(t, silent)

	c.record(t.Context(), opInspect, time.Second, context.DeadlineExceeded)
	_, silent = c.unanswered()
	require.True(t, silent, "an inspect that is not answered in time")
	c.record(left, opInspect, time.Second, context.Canceled)
	_, silent = c.unanswered()
	require.True(t, silent, "no answer came since")
	c.record(t.Context(), opInspect, time.Second, nil)
	_, silent = c.unanswered()
	require.False(t, silent)
}
