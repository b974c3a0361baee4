package scale

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	"berth/controller/stats"
	"berth/hack/bench/table"
	"berth/runtime"
	"berth/runtime/fake"
)

// fleet is running containers of an engine in memory.
type fleet struct {
	engine *fake.Engine
	ids    []string
	runs   map[string]runtime.State
}

func newFleet(b *testing.B, count int) *fleet {
	b.Helper()
	f := &fleet{engine: newEngine(), runs: map[string]runtime.State{}}
	for i := range count {
		n := runtime.Name{ID: name(i), Role: runtime.Server}
		_, err := f.engine.Create(b.Context(), runtime.Spec{Name: n, Image: "i"})
		require.NoError(b, err)
		require.NoError(b, f.engine.Start(b.Context(), n))
		f.ids, f.runs[n.ID] = append(f.ids, n.ID), f.engine.Outside.State(n)
	}
	return f
}

func (f *fleet) Running(id string) (string, time.Time, bool) {
	s, ok := f.runs[id]
	return s.ContainerID, s.StartedAt, ok
}

func (f *fleet) RunningIDs() []string { return f.ids }

// BenchmarkStats measures a round of samples of all containers for one listener of the
// whole node, until the JSON of each is encoded.
func BenchmarkStats(b *testing.B) {
	const rounds = 8
	count := most(b) / 2
	few, many := statsRound(b, count/10, rounds), statsRound(b, count, rounds)
	each := func(cpu float64, of int) []float64 { return []float64{cpu * 1e6 / float64(of)} }
	table.Add(b, table.Row{Measure: fmt.Sprintf("stats of %d for one socket, CPU of a round", count), Unit: "s",
		Berth: []float64{many}, Goal: table.AtMost(0.3)})
	table.Add(b, table.Row{Measure: fmt.Sprintf("stats of %d for one socket, CPU of each", count), Unit: "µs",
		Berth: each(many, count), Floor: each(few, count/10), Goal: table.AtMost(1.2)})
}

// statsRound returns the processor time of a round, in seconds.
func statsRound(b *testing.B, count, rounds int) float64 {
	b.Helper()
	f := newFleet(b, count)
	hub := stream.New(b.TempDir(), stream.Options{})
	defer hub.Close()
	sampler := stats.NewSampler(f, f.engine, hub, stats.Options{})
	l, err := hub.Listen("")
	require.NoError(b, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	parts.Go(func() { _ = sampler.Run(ctx) })
	receive := func(left int) {
		for left > 0 {
			out, err := l.Next(ctx)
			require.NoError(b, err)
			left -= len(out)
		}
	}
	receive(count) // the first round takes two readings of each
	used := processorTime(b)
	receive(rounds * count)
	return (processorTime(b) - used).Seconds() / float64(rounds)
}
