package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/berthtest"
)

// TestGCPacer: a small heap may have more garbage while it is collected often, and no longer.
func TestGCPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var percent atomic.Int64
		p := newGCPacer(func(n int) { percent.Store(int64(n)) })
		collected := func(after time.Duration, live uint64) int64 {
			time.Sleep(after)
			synctest.Wait()
			p.collected(time.Now(), live)
			return percent.Load()
		}
		require.EqualValues(t, gcPercent, percent.Load())
		require.EqualValues(t, gcPercent, collected(time.Minute, 8<<20), "the first of a burst")
		require.EqualValues(t, 200, collected(gcBusy/2, 8<<20), "16 MiB")
		require.EqualValues(t, 100, collected(gcBusy/2, 16<<20))
		require.EqualValues(t, gcPercent, collected(gcBusy/2, 1<<30), "a large heap has enough")
		require.EqualValues(t, 200, collected(gcBusy/2, 8<<20))
		require.EqualValues(t, gcPercent, collected(gcBusy, 8<<20), "not busy")
		require.EqualValues(t, 200, collected(gcBusy/2, 8<<20))
		time.Sleep(gcIdle)
		synctest.Wait()
		require.EqualValues(t, gcPercent, percent.Load(), "idle, without a collection")
		require.Positive(t, collected(gcBusy/2, 0))
		time.Sleep(gcIdle) // the timer has ended
	})
}

// TestGCPacerFollowsRuntime: the runtime reports its collections, one after another.
func TestGCPacerFollowsRuntime(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	paceGC()
	growth := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	require.EqualValues(t, gcPercent, growth())
	berthtest.Until(t, time.Minute, "the growth of a busy daemon", func() bool {
		runtime.GC()
		return growth() > gcPercent
	})
	berthtest.Until(t, time.Minute, "that of an idle one", func() bool { return growth() == gcPercent })
}
