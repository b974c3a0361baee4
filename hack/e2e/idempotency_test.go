package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestKeyedRequestsSurviveKills kills the daemon while clients create volumes with
// idempotency keys, and repeat each request until it is answered, and once more: each
// key has created exactly one volume.
func TestKeyedRequestsSurviveKills(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	const workers = 8
	requests, kills := rounds(400, 4000), rounds(4, 20)
	var count, replayed atomic.Int64
	var mu sync.Mutex
	created := map[string]bool{}
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := 0; count.Load() < int64(requests); i++ {
				key := fmt.Sprintf("key-%d-%d", w, i)
				first, again := createWithKey(b, key)
				second, replay := createWithKey(b, key)
				if first != second || !replay {
					t.Errorf("%s created %s and %s", key, first, second)
				}
				if again {
					replayed.Add(1)
				}
				mu.Lock()
				created[first] = true
				mu.Unlock()
				count.Add(1)
			}
		})
	}
	for i := range kills {
		berthtest.Until(t, 3*time.Minute, "more answers", func() bool { return count.Load() > int64((i+1)*requests/(kills+1)) })
		b.Kill9(t)
		b.Run(t)
		b.Answers(t, "/healthz")
	}
	all.Wait()
	var body struct {
		Volumes []struct {
			ID string `json:"volume_id"`
		}
	}
	b.Get(t, "/volumes", &body)
	require.Len(t, created, len(body.Volumes))
	for _, v := range body.Volumes {
		require.True(t, created[v.ID], "no client knows %s", v.ID)
	}
	t.Logf("%d volumes, %d of them created by a request whose answer was lost", len(created), replayed.Load())
}

// createWithKey creates a volume, and repeats the request until it is answered. It
// returns the volume, and whether the answer was a stored one.
func createWithKey(b *berthtest.Berth, key string) (volume string, replayed bool) {
	for {
		answer, err := b.Try(context.Background(), "POST", "/volumes", nil, "Idempotency-Key", key)
		if err != nil || answer.Status != 201 {
			continue
		}
		var body struct {
			ID string `json:"volume_id"`
		}
		_ = json.Unmarshal(answer.Body, &body) // an empty id fails the test
		return body.ID, answer.Header.Get("Idempotent-Replayed") == "true"
	}
}
