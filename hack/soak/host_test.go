package soak_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// engineUptime is how long the engine runs between two restarts.
const engineUptime = 15 * time.Second

// restartEngine terminates and kills the engine by turns until ctx ends, and
// returns how often.
func restartEngine(ctx context.Context, t *testing.T, engine *enginetest.Isolated, good *goodTenant) (restarts int) {
	for {
		sleep(ctx, engineUptime)
		if ctx.Err() != nil {
			return restarts
		}
		restartOnce(t, engine, good, restarts%2 == 0)
		restarts++
	}
}

func restartOnce(t *testing.T, engine *enginetest.Isolated, good *goodTenant, terminate bool) {
	good.engineUp.Lock()
	defer good.engineUp.Unlock()
	if terminate {
		engine.Terminate(t)
	} else {
		engine.Kill9(t)
	}
	engine.Start(t)
	good.restarted = true
	if !berthtest.Within(wait, func() bool {
		answer, err := good.b.Try(t.Context(), "GET", "/readyz", nil)
		return err == nil && answer.Status == http.StatusOK
	}) {
		t.Error("berth does not become ready after the engine's restart")
	}
}

// startSlowPanel returns the URL of a panel that takes a second for each batch
// and refuses every third one.
func startSlowPanel(t *testing.T) string {
	t.Helper()
	var batches atomic.Int64
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		late := time.NewTimer(time.Second)
		defer late.Stop()
		select {
		case <-late.C:
		case <-end:
		}
		if batches.Add(1)%3 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(func() { close(end); server.Close() })
	return server.URL
}
