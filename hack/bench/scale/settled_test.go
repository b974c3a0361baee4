package scale

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/bench/table"
	"berth/store"
)

// resync is the period of the resync here. The daemon's is a minute.
const resync = 20 * time.Second

// most returns the number of containers of a large node: 10,000, or BERTH_BENCH_CONTAINERS.
func most(b *testing.B) int {
	b.Helper()
	text := os.Getenv("BERTH_BENCH_CONTAINERS")
	if text == "" {
		return 10_000
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err)
	return n
}

// revisions returns the revision of the store and the seq of its last transition.
func revisions(b *testing.B, s *store.Store) (revision, seq uint64) {
	b.Helper()
	tx := s.Read()
	revision = tx.Revision()
	_, seq = tx.EventBounds()
	return revision, seq
}

// BenchmarkSettled measures a resync of a large node on which nothing changes, over two of them, how long
// a kill takes meanwhile, and the creation and deletion of one more container beside the
// first one.
func BenchmarkSettled(b *testing.B) {
	count := most(b)
	n := newNode(b, b.TempDir(), newEngine(), resync)
	n.volumes(b, 0, count+2)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	var first, last []float64
	for range 5 {
		first = append(first, n.once(b, client, 0))
	}
	n.run(b, 1, count)
	time.Sleep(resync)
	revision, seq := revisions(b, n.store)
	used := processorTime(b)
	time.Sleep(2 * resync)
	cpu := (processorTime(b) - used) / 2
	after, newest := revisions(b, n.store)
	require.Equal(b, []uint64{revision, seq}, []uint64{after, newest}, "a resync writes nothing")
	table.Add(b, table.Row{Measure: fmt.Sprintf("resync of %d settled containers, CPU", count), Unit: "s", Berth: []float64{cpu.Seconds()}, Goal: table.AtMost(3)})
	var kills []float64
	for i := range 50 {
		kills = append(kills, n.kill(b, client, 1+i))
	}
	table.Add(b, table.Row{Measure: fmt.Sprintf("kill beside %d containers, until its event", count), Unit: "ms", Berth: kills, Goal: table.AtMost(20)})
	for range 5 {
		last = append(last, n.once(b, client, count))
	}
	table.Add(b, table.Row{Measure: fmt.Sprintf("create and delete beside %d containers, CPU", count), Unit: "ms", Berth: last, Floor: first, Goal: table.AtMost(3)})
}

// once creates a container, waits until it runs, deletes it, and returns the processor
// time, in ms.
func (n *node) once(b *testing.B, client *http.Client, i int) float64 {
	b.Helper()
	used := processorTime(b)
	_, seq := revisions(b, n.store)
	require.NoError(b, n.create(client, i))
	n.await(b, seq, 1, func(e v1.Event) bool { return e.Container == name(i) && e.Data == string(v1.Running) })
	require.NoError(b, n.send(client, "DELETE", "/containers/"+name(i), ""))
	require.Eventually(b, func() bool {
		_, err := store.Containers.Get(n.store.Read(), name(i))
		return err != nil
	}, time.Minute, 5*time.Millisecond)
	return (processorTime(b) - used).Seconds() * 1000
}

// kill returns the time from the request to the event, in ms.
func (n *node) kill(b *testing.B, client *http.Client, i int) float64 {
	b.Helper()
	_, seq := revisions(b, n.store)
	began := time.Now()
	require.NoError(b, n.send(client, "POST", "/containers/"+name(i)+"/kill", ""))
	n.await(b, seq, 1, func(e v1.Event) bool { return e.Container == name(i) && e.Data == string(v1.Exit) })
	return time.Since(began).Seconds() * 1000
}
