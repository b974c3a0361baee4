package e2e_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

const many = 50

// TestFiftyContainers creates and starts fifty containers at once, kills the daemon,
// and measures the time until it reports all of them as running again.
func TestFiftyContainers(t *testing.T) {
	b := berthtest.Start(t, berthtest.Options{})
	s := b.Listen(t, "/ws")
	began := time.Now()
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() { b.Create(t, fmt.Sprintf("m%02d", i), berthtest.Spec{"power": "running"}) })
	}
	wg.Wait()
	accepted := time.Since(began)
	s.Await(t, "all run", func(all []berthtest.Message) bool { return runningIn(all) == many })
	t.Logf("%d containers: accepted after %s, running after %s (%.1f/s)", many, accepted.Round(time.Millisecond),
		time.Since(began).Round(time.Millisecond), many/time.Since(began).Seconds())
	checkNumbers(t, b, s)
	before := b.Processes(t)
	require.Len(t, before, many)
	for range rounds(2, 20) {
		b.Kill9(t)
		began = time.Now()
		b.Run(t)
		b.Answers(t, "/api/v1/public/ping")
		ping := time.Since(began)
		require.Equal(t, many, countRunning(t, b), "the state survives the daemon")
		known := time.Since(began)
		b.Ready(t)
		t.Logf("ping after %s, all known to run after %s, ready after %s", ping.Round(time.Millisecond),
			known.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		require.Equal(t, before, b.Processes(t), "the same processes, not started again")
	}
	for id := range before {
		b.Must(t, "DELETE", "/containers/"+id, nil)
	}
	berthtest.Until(t, 2*wait, "all are gone", func() bool { return len(b.Containers(t, "")) == 0 })
}

func runningIn(all []berthtest.Message) (n int) {
	for _, m := range all {
		if m.Event == "event" && m.Data == "running" {
			n++
		}
	}
	return n
}

func countRunning(t *testing.T, b *berthtest.Berth) (n int) {
	t.Helper()
	var list struct{ Containers []berthtest.Container }
	b.Get(t, "/containers", &list)
	for _, c := range list.Containers {
		if c.State == "running" {
			n++
		}
	}
	return n
}
