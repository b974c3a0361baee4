package container

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serve lets an engine complete calls with the limit of c, while others wait. Rate
// returns the calls that it completes in a second with a number of them at once.
func serve(c *concurrency, now time.Time, calls int, rate func(limit int) float64) time.Time {
	for range calls {
		now = now.Add(time.Duration(float64(time.Second) / rate(c.limit)))
		c.completed(now, true)
	}
	return now
}

func TestConcurrencyFindsTheBestRate(t *testing.T) {
	const best = 5
	peak := func(limit int) float64 { // contention beyond the best
		if limit > best {
			return 100 * best / (1 + 0.1*float64(limit-best))
		}
		return 100 * float64(limit)
	}
	plateau := func(limit int) float64 { return 100 * float64(min(limit, best)) }
	for name, rate := range map[string]func(int) float64{"peak": peak, "plateau": plateau} {
		for _, first := range []int{1, 4, 8, 16} {
			t.Run(fmt.Sprint(name, " from ", first), func(t *testing.T) {
				c := concurrency{limit: first, most: 16}
				now := serve(&c, time.Unix(0, 0), 1000, rate)
				for range 100 {
					now = serve(&c, now, 10, rate)
					require.InDelta(t, best, c.limit, 2)
				}
			})
		}
	}
}

// TestConcurrencyNeedsWaitingCalls expects no change while the limit is not reached, and
// none of a fixed limit.
func TestConcurrencyNeedsWaitingCalls(t *testing.T) {
	idle, fixed := concurrency{limit: 4, most: 16}, concurrency{limit: 4}
	now := time.Unix(0, 0)
	for i := range 1000 {
		now = now.Add(time.Duration(i) * time.Millisecond)
		idle.completed(now, i%7 != 0)
		fixed.completed(now, true)
	}
	require.Equal(t, 4, idle.limit)
	require.Equal(t, 4, fixed.limit)
}

// TestConcurrencyStaysInBounds expects 1 to most, whatever the rates are.
func TestConcurrencyStaysInBounds(t *testing.T) {
	rising, falling := concurrency{limit: 2, most: 6}, concurrency{limit: 5, most: 6}
	serve(&rising, time.Unix(0, 0), 1000, func(limit int) float64 { return float64(limit * limit) })
	serve(&falling, time.Unix(0, 0), 1000, func(limit int) float64 { return 100 / float64(limit) })
	require.InDelta(t, 6, rising.limit, 1)
	require.InDelta(t, 1, falling.limit, 1)
	stuck := concurrency{limit: 1, most: 8, rate: 10}
	serve(&stuck, time.Unix(0, 0), 500, func(limit int) float64 { return 10 * float64(min(limit, 4)) })
	require.InDelta(t, 4, stuck.limit, 2, "one is left again")
	for range 100 {
		serve(&rising, time.Unix(0, 0), 7, func(int) float64 { return 1e12 })
		require.True(t, rising.limit >= 1 && rising.limit <= 6)
	}
}

// TestLimitOfPermitsChanges lowers and raises the limit while permits are held.
func TestLimitOfPermitsChanges(t *testing.T) {
	s := NewAdaptiveSemaphore(3, 8)
	for _, id := range []string{"a", "b", "c"} {
		require.True(t, s.acquire(id, StartServer))
	}
	for _, id := range []string{"d", "e", "f"} {
		require.False(t, s.acquire(id, StartServer))
	}
	s.most.limit = 2
	s.release()
	require.False(t, s.acquire("d", StartServer), "two of two are held")
	s.most.limit = 4
	s.release()
	for _, id := range []string{"d", "e", "f"} {
		require.True(t, s.acquire(id, StartServer), "%s is reserved", id)
	}
	require.False(t, s.acquire("g", StartServer))
	for range 4 {
		s.release()
	}
	require.Zero(t, s.used-len(s.granted))
}
