package limit

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(Pace{Every: time.Second, Burst: 20, Keys: 10})
		for range 20 {
			require.Zero(t, r.Take("a", 1))
		}
		for range 3 { // a refusal does not put off the next one
			require.Equal(t, time.Second, r.Take("a", 1))
		}
		require.Equal(t, 2*time.Second, r.Left("a", 2))
		require.Zero(t, r.Take("b", 1))
		for range 100 {
			require.Zero(t, r.Take("", 1), "the administrator")
		}
		time.Sleep(time.Second)
		require.Zero(t, r.Left("a", 1))
		require.Zero(t, r.Take("a", 1))
		r.Count("a", 5)
		began := time.Now()
		require.NoError(t, r.Wait(t.Context(), "a", func() error { return nil }))
		require.Equal(t, 6*time.Second, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, r.Wait(ctx, "a", nil), context.Canceled)
		require.Equal(t, time.Second, r.Left("a", 1), "one that does not wait is not counted")
	})
}

// TestRateIsBounded: keys above the bound are counted as one, and forgotten when they count
// nothing any more.
func TestRateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(Pace{Every: time.Second, Burst: 3, Keys: 10})
		for i := range 10 {
			require.Zero(t, r.Take(fmt.Sprint("a", i), 1))
		}
		for i := range 3 {
			require.Zero(t, r.Take(fmt.Sprint("b", i), 1))
		}
		require.NotZero(t, r.Take("new", 1))
		require.Len(t, r.by, 11)
		time.Sleep(3 * time.Second)
		require.Zero(t, r.Take("new", 1))
		require.LessOrEqual(t, len(r.by), 2)
	})
}

// TestRateLists: what is left out is counted in the next line of its key.
func TestRateLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(Pace{Every: time.Second, Burst: 1, Keys: 10})
		list := func(key string, left int, ok bool) {
			t.Helper()
			n, listed := r.List(key)
			require.Equal(t, []any{left, ok}, []any{n, listed})
		}
		list("a", 0, true)
		list("a", 0, false)
		list("a", 0, false)
		list("b", 0, true)
		time.Sleep(time.Second)
		list("a", 2, true)
		time.Sleep(time.Second)
		list("a", 0, true)
		require.Empty(t, r.left)

		list("a", 0, false)
		time.Sleep(time.Second)
		for i := range 10 {
			list(fmt.Sprint("other", i), 0, true)
		}
		require.NotContains(t, r.by, "a")
		require.Empty(t, r.left, "of keys that are forgotten")
	})
}
