package edge

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBudget: neither one minted token nor all of them take the configured token's part.
func TestBudget(t *testing.T) {
	var b budget
	take := func(token string, n int64) bool { _, ok := b.try(token, n, 100); return ok }
	require.True(t, take("a", 25))
	require.False(t, take("a", 1), "a fourth")
	require.True(t, take("b", 25))
	require.True(t, take("c", 25))
	require.False(t, take("d", 1), "three fourths")
	require.True(t, take("", 25))
	require.False(t, take("", 1))

	ctx, cancel := context.WithCancel(t.Context())
	left, waits := make(chan error, 1), make(chan error, 1)
	go func() { left <- b.reserve(ctx, "d", 10, 100) }()
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	go func() { waits <- b.reserve(t.Context(), "d", 10, 100) }()
	b.release("a", 25)
	require.NoError(t, <-waits)
	b.release("b", 25)
	b.release("c", 25)
	b.release("d", 10)
	b.release("", 25)
	require.Equal(t, []int64{0, 0, 0}, []int64{b.used, b.minted, int64(len(b.byToken))})
}
