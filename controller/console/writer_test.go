package console

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, atOnce, most atomic.Int64
		w := &writer{work: func() {
			most.Store(max(most.Load(), atOnce.Add(1)))
			time.Sleep(time.Second)
			atOnce.Add(-1)
			calls.Add(1)
		}}
		w.wait()
		w.wake()
		time.Sleep(500 * time.Millisecond)
		for range 3 {
			w.wake() // they cause one more call
		}
		w.wait()
		require.Equal(t, int64(2), calls.Load())
		w.wake()
		w.wait()
		require.Equal(t, int64(3), calls.Load())
		require.Equal(t, int64(1), most.Load())
	})
}
