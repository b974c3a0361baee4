package e2e_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/hack/test/berthtest"
)

// TestWatchResumes kills the daemon while a client watches its transitions and follows
// a console: each transition is delivered once, and no line is lost.
func TestWatchResumes(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "mc", berthtest.Spec{"startup_command": "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 1; done", "restart_policy": map[string]any{"mode": "never"}})
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	var mu sync.Mutex
	var seqs []uint64
	var output strings.Builder
	ended := make(chan struct{})
	watching.Go(func() {
		for m, err := range b.API.Events().Watch(ctx, client.Cursor{}) {
			mu.Lock()
			if err == nil {
				seqs = append(seqs, m.Seq)
			}
			mu.Unlock()
			if m.Container == "mc" && m.Data == "exit" {
				close(ended)
			}
		}
	})
	watching.Go(func() {
		for m := range b.API.Containers().Follow(ctx, "mc", client.OpenOptions{Tail: 100}) {
			if m.Event == client.EventConsole || m.Event == client.EventLogs {
				mu.Lock()
				output.WriteString(m.Data)
				mu.Unlock()
			}
		}
	})
	b.Verb(t, "mc", "start")
	printed := func(text string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(output.String(), text)
		}
	}
	berthtest.Until(t, wait, "the console is followed", printed("line 2"))
	b.Restart(t)
	<-ended
	berthtest.Until(t, wait, "the rest of the console", printed("line 9"))
	list, err := b.API.Events().List(t.Context(), client.Cursor{}, 1000, client.EventFilter{})
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	for i, e := range list.Events[:len(seqs)] {
		require.Equal(t, e.Seq, seqs[i])
	}
	for i := range 9 {
		require.Contains(t, output.String(), "line "+string(rune('1'+i))+"\n")
	}
}
