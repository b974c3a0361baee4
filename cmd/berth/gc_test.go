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

	"berth/hack/test/berthtest"
)

// TestGCPacer: a small heap may have more garbage, but only while it is collected often.
func TestGCPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var percent atomic.Int64
		p := newGCPacer(func(n int) { percent.Store(int64(n)) })
		defer p.stop()
		collected := func(after time.Duration, kept uint64) int64 {
			time.Sleep(after)
			synctest.Wait()
			p.collected(time.Now(), kept)
			return percent.Load()
		}
		require.EqualValues(t, gcPercent, percent.Load())
		require.EqualValues(t, gcPercent, collected(time.Minute, 8<<20), "the first of a burst")
		require.EqualValues(t, 64, collected(gcBusy-1, 25<<20), "16 MiB")
		require.EqualValues(t, 80, collected(gcIdle-1, 20<<20), "still busy")
		require.EqualValues(t, gcMost, collected(gcIdle-1, 2<<20), "the heap may be large when it is collected the next time")
		require.EqualValues(t, gcPercent, collected(gcBusy-1, 1<<30), "a large heap has enough")
		require.EqualValues(t, gcPercent, collected(gcBusy, 8<<20), "not busy")
		require.EqualValues(t, gcMost, collected(gcBusy-1, 8<<20))
		time.Sleep(gcIdle)
		synctest.Wait()
		require.EqualValues(t, gcPercent, percent.Load(), "idle, without a collection")
		require.EqualValues(t, gcPercent, collected(0, 8<<20))
		require.EqualValues(t, gcMost, collected(gcBusy-1, 0))
	})
}

// TestGCPacerFollowsRuntime: the runtime reports one collection after another, until the pacer is
// stopped.
func TestGCPacerFollowsRuntime(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	stop := paceGC()
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
	stop()
	for range 20 {
		runtime.GC()
	}
	require.EqualValues(t, gcPercent, growth())
}
