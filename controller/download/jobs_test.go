package download

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestJobPanics: a download that panics ends with an error, and frees its permit.
func TestJobPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		j := NewJobs(nil) // a call of nil panics
		j.Log = slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var ended []string
		all.Go(func() { _ = j.Run(ctx) })
		all.Go(func() { _ = j.Source(ctx, func(id string) { ended = append(ended, id) }) })
		synctest.Wait()
		require.True(t, j.start("p", "v", "url", "path", ""))
		synctest.Wait()
		require.Equal(t, []string{"p"}, ended)
		got := j.get("p")
		require.True(t, got.done)
		require.ErrorContains(t, got.err, "panic")
		require.Contains(t, log.String(), "download/jobs.go", "the stack")
		require.Zero(t, j.running())
		cancel()
		all.Wait()
	})
}
