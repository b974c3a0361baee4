package backup

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestVolumesTakeTurns: many requests for one volume delay another volume by one job.
func TestVolumesTakeTurns(t *testing.T) {
	j := NewJobs(func() int { return 1 }, slog.New(slog.DiscardHandler))
	at := time.Unix(0, 0)
	want := map[string]place{"a1": {kind: BackingUp, volume: "a", since: at}, "a2": {kind: BackingUp, volume: "a", since: at.Add(1)}, "a3": {kind: BackingUp, volume: "a", since: at.Add(2)},
		"b": {kind: BackingUp, volume: "b", since: at.Add(3)}, "r": {kind: Restoring, volume: "a", since: at.Add(4)}}
	var began []string
	for len(began) < len(want) {
		for id, p := range want {
			j.waiting[id] = p
			if j.jobs[id] != nil {
				delete(j.waiting, id)
			}
		}
		next := j.first("")
		require.True(t, j.reserve(next, want[next], nil))
		j.jobs[next].ended = true
		began = append(began, next)
	}
	require.Equal(t, []string{"r", "b", "a1", "a2", "a3"}, began)
}

// TestJobPanics: a job that panics ends with an error, and what it wrote may be left.
func TestJobPanics(t *testing.T) {
	for kind, leftover := range map[Kind]bool{Restoring: false, BackingUp: true, Removing: false} {
		var log bytes.Buffer
		j := NewJobs(func() int { return 1 }, slog.New(slog.NewTextHandler(&log, nil)))
		k := &job{id: "b", place: place{kind: kind}, work: func(context.Context, func(bytes, total int64)) Outcome { panic("broken archive") }}
		j.jobs[k.id] = k
		j.run(t.Context(), k)
		require.Contains(t, log.String(), "jobs_test.go", "the stack")
		got := j.observe(k.id)
		require.Equal(t, JobEnded, got.State)
		require.ErrorContains(t, got.Outcome.Err, "broken archive")
		require.Equal(t, leftover, got.Outcome.Leftover)
	}
}
