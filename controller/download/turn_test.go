package download

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// hostileServers are downloads that do not end, in turns. Their counters have a lock.
type hostileServers struct {
	mu            sync.Mutex
	running, most int
	turns, failed map[string]int // by id
}

func (h *hostileServers) count(id string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running += n
	h.most = max(h.most, h.running)
	if n > 0 {
		h.turns[id]++
	}
}

func (h *hostileServers) fetch(ctx context.Context, volume, _, _, _ string, turn *Turn) error {
	h.count(volume, 1)
	for {
		time.Sleep(time.Second)
		own := !turn.Over()
		if !own {
			h.count(volume, -1)
		}
		for paused := !own; !own; {
			var err error
			if own, err = turn.Next(ctx); errors.Is(err, errPaused) {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.failed[volume]++
				return err
			} else if err != nil {
				return err
			}
			if own && paused {
				h.count(volume, 1)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// contend lets volumes ask for a download each second as the reconciler does, the last one
// after the others have begun to, until done. It returns how long the last one waited.
func contend(t *testing.T, volumes int, done func(h *hostileServers, since time.Duration, lastRuns bool) bool) (h *hostileServers, waited time.Duration) {
	t.Helper()
	h = &hostileServers{turns: map[string]int{}, failed: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		j := NewJobs(h.fetch)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = j.Run(ctx) })
		synctest.Wait()
		began, last := time.Now(), fmt.Sprint(volumes)
		for !done(h, time.Since(began), waited > 0) {
			for v := range volumes {
				if id := fmt.Sprint(v); !j.get(id).exists && j.free(id) {
					j.start(id, id, "", "", "")
				}
			}
			if waited == 0 && j.free(last) && j.start(last, last, "", "", "") {
				waited = time.Since(began)
			}
			time.Sleep(observe)
			synctest.Wait()
		}
		cancel()
		all.Wait()
	})
	return h, waited
}

// TestTurns: volumes whose downloads do not end share the permits with one that asks last.
// It waits for two turns at most, and each of the others goes on after its wait.
func TestTurns(t *testing.T) {
	h, waited := contend(t, 16, func(_ *hostileServers, since time.Duration, runs bool) bool {
		return runs && since > time.Hour || since > 6*time.Hour
	})
	require.Positive(t, waited, "it waits for ever")
	require.LessOrEqual(t, waited, 2*(turnTime+time.Minute))
	require.Len(t, h.turns, 17)
	for id, n := range h.turns {
		require.GreaterOrEqual(t, n, 2, id)
	}
	require.Equal(t, maxRunning, h.most)
	require.Empty(t, h.failed)
}

// TestDownloadsAloneHaveNoTurns: without others that wait nothing is interrupted.
func TestDownloadsAloneHaveNoTurns(t *testing.T) {
	h, _ := contend(t, maxRunning-1, func(_ *hostileServers, since time.Duration, _ bool) bool { return since > 3*time.Hour })
	require.Len(t, h.turns, maxRunning)
	for id, n := range h.turns {
		require.Equal(t, 1, n, id)
	}
}

// TestPausedDownloadsAreBounded: one that cannot wait for its next turn fails, so that the
// number of open files is bounded.
func TestPausedDownloadsAreBounded(t *testing.T) {
	h, _ := contend(t, 79, func(_ *hostileServers, since time.Duration, _ bool) bool { return since > 4*time.Hour })
	require.Len(t, h.turns, 80)
	require.Len(t, h.failed, 80-maxOpen)
}
