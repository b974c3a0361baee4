package scale

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/bench/table"
	"berth/runtime"
	"berth/runtime/fake"
	"berth/store"
)

// counting counts the calls of an engine that are in flight, without streams.
type counting struct {
	*fake.Engine
	now, most, all atomic.Int64
}

func (c *counting) call() (end func()) {
	c.all.Add(1)
	now := c.now.Add(1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	return func() { c.now.Add(-1) }
}

func (c *counting) Inspect(ctx context.Context, n runtime.Name) (runtime.State, error) {
	defer c.call()()
	time.Sleep(time.Millisecond) // as an engine that answers over a socket
	return c.Engine.Inspect(ctx, n)
}

func (c *counting) List(ctx context.Context) ([]runtime.Found, error) {
	defer c.call()()
	return c.Engine.List(ctx)
}

// stopAll requests that the containers from, from+1, … to-1 do not run.
func (n *node) stopAll(b *testing.B, from, to int) {
	b.Helper()
	_, seq := revisions(b, n.store)
	require.NoError(b, n.store.Update(func(tx *store.Tx) error {
		for i := from; i < to; i++ {
			err := store.Containers.SetSpec(tx, name(i), func(s *v1.ContainerSpec) error {
				s.Power, s.KillGeneration = v1.PowerOff, s.RunGeneration
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	n.await(b, seq, to-from, func(e v1.Event) bool { return e.Data == string(v1.Exit) })
}

// BenchmarkStart measures the start of a node with many containers, while a tenth of them
// run: until it answers a ping, and until the consoles of all running ones are read.
func BenchmarkStart(b *testing.B) {
	count := most(b) / 2
	dir, engine := b.TempDir(), newEngine()
	n := newNode(b, dir, engine, time.Hour)
	n.volumes(b, 0, count)
	n.run(b, 0, count)
	for from := count / 10; from < count; from += 500 {
		n.stopAll(b, from, min(count, from+500))
	}
	n.stop()
	var ping, ready, cpu, calls, inspects []float64
	for range 3 {
		counted := &counting{Engine: engine}
		used, began := processorTime(b), time.Now()
		n = newNodeOn(b, dir, counted, time.Hour)
		answer, err := http.Get("http://" + n.addr + "/api/v1/public/ping")
		require.NoError(b, err)
		require.NoError(b, answer.Body.Close())
		require.Equal(b, http.StatusOK, answer.StatusCode)
		ping = append(ping, float64(time.Since(began).Microseconds())/1000)
		for len(n.consoles.RunningIDs()) < count/10 || counted.all.Load() < int64(count) {
			require.Less(b, time.Since(began), time.Minute)
			time.Sleep(time.Millisecond)
		}
		ready = append(ready, time.Since(began).Seconds())
		cpu = append(cpu, (processorTime(b) - used).Seconds())
		calls, inspects = append(calls, float64(counted.most.Load())), append(inspects, float64(counted.all.Load())/float64(count))
		n.stop()
	}
	of := fmt.Sprintf("start with %d containers, %d running: ", count, count/10)
	table.Add(b, table.Row{Measure: of + "ping", Unit: "ms", Berth: ping, Goal: table.AtMost(120 * float64(count) / 1000)})
	table.Add(b, table.Row{Measure: of + "all observed", Unit: "s", Berth: ready, Goal: table.AtMost(2)})
	table.Add(b, table.Row{Measure: of + "CPU", Unit: "s", Berth: cpu, Goal: table.AtMost(2)})
	table.Add(b, table.Row{Measure: of + "calls at once", Unit: "", Berth: calls, Goal: table.AtMost(workers + heavyCalls + 1)})
	table.Add(b, table.Row{Measure: of + "calls of each", Unit: "", Berth: inspects, Goal: table.AtMost(2.5)})
}
