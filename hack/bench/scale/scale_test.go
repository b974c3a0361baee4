package scale

import (
	"context"
	"fmt"
	"io"
	"net/http"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/bench/table"
	"berth/runtime/fake"
	"berth/store"
)

// clients create containers at the same time.
const clients = 32

func name(i int) string   { return fmt.Sprintf("server-%05d", i) }
func volume(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012d", i, i) }

// volumes stores the volumes from, from+1, … to-1.
func (n *node) volumes(b *testing.B, from, to int) {
	b.Helper()
	for ; from < to; from += 500 {
		require.NoError(b, n.store.Update(func(tx *store.Tx) error {
			for i := from; i < min(to, from+500); i++ {
				if err := store.Volumes.Create(tx, volume(i), v1.VolumeSpec{}); err != nil {
					return err
				}
				if err := store.Volumes.SetStatus(tx, volume(i), func(s *v1.VolumeStatus) { s.Created = true }); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// send sends a request and requires success.
func (n *node) send(client *http.Client, method, path, body string) error {
	r, err := http.NewRequest(method, "http://"+n.addr+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/vnd.berthv1+json")
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil { // otherwise each request opens a connection
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return nil
}

func (n *node) create(client *http.Client, i int) error {
	return n.send(client, "POST", "/containers", fmt.Sprintf(`{"internal_id":%q,"image":"i","volume_id":%q,"startup_command":"serve","power":"running"}`, name(i), volume(i)))
}

// run creates the containers from, from+1, … to-1, and waits until they run.
func (n *node) run(b *testing.B, from, to int) time.Duration {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	next := make(chan int)
	began := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for i := range next {
				if err := n.create(client, i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	all.Wait()
	n.await(b, 0, to-from, func(e v1.Event) bool { return e.Data == string(v1.Running) && e.Container >= name(from) })
	return time.Since(began)
}

// await waits for a number of transitions after a seq that match.
func (n *node) await(b *testing.B, since uint64, count int, matches func(v1.Event) bool) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for e, err := range n.store.Events(ctx, since) {
		require.NoError(b, err)
		if e.Event == v1.EventState && matches(e) {
			if count--; count == 0 {
				return
			}
		}
	}
	b.Fatal("containers do not run")
}

// heap returns the bytes of live objects and stacks, once they have not become fewer for
// some seconds: Badger keeps the memory of its last merge that long.
func heap() (least float64) {
	for same := 0; same < 5; same++ {
		time.Sleep(time.Second)
		goruntime.GC()
		goruntime.GC()
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		if now := float64(m.HeapAlloc + m.StackInuse); least == 0 || now < 0.99*least {
			least, same = now, 0
		}
	}
	return least
}

func newEngine() *fake.Engine {
	e := fake.New(nil)
	e.Outside.AddImage("i")
	return e
}

// BenchmarkGrow creates 10, 100, 1,000 and 10,000 containers until all of them run.
func BenchmarkGrow(b *testing.B) {
	for _, count := range []int{10, 100, 1000, 10_000} {
		n := newNode(b, b.TempDir(), newEngine(), time.Hour)
		n.volumes(b, 0, count)
		before, used := heap(), processorTime(b)
		took := n.run(b, 0, count)
		cpu := processorTime(b) - used
		table.Add(b, table.Row{Measure: fmt.Sprintf("%d containers from POST to running", count), Unit: "/s",
			Berth: []float64{float64(count) / took.Seconds()}, Goal: table.AtLeast(2000)})
		table.Add(b, table.Row{Measure: fmt.Sprintf("%d containers from POST to running, CPU of each", count), Unit: "µs",
			Berth: []float64{float64(cpu.Microseconds()) / float64(count)}, Goal: table.AtMost(1000)})
		table.Add(b, table.Row{Measure: fmt.Sprintf("memory of each of %d containers", count), Unit: "KiB",
			Berth: []float64{(heap() - before) / 1024 / float64(count)}, Goal: table.AtMost(10)})
		n.stop()
	}
}
