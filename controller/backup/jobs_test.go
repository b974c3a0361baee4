package backup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestVolumesTakeTurns: many requests for one volume delay another volume by one job.
func TestVolumesTakeTurns(t *testing.T) {
	j := NewJobs(func() int { return 1 })
	at := time.Unix(0, 0)
	want := map[string]place{"a1": {BackingUp, "a", at}, "a2": {BackingUp, "a", at.Add(1)}, "a3": {BackingUp, "a", at.Add(2)},
		"b": {BackingUp, "b", at.Add(3)}, "r": {Restoring, "a", at.Add(4)}}
	var began []string
	for len(began) < len(want) {
		for id, p := range want {
			j.waiting[id] = p
			if j.jobs[id] != nil {
				delete(j.waiting, id)
			}
		}
		next := j.first(false)
		require.True(t, j.reserve(next, want[next], nil))
		j.jobs[next].ended = true
		began = append(began, next)
	}
	require.Equal(t, []string{"r", "b", "a1", "a2", "a3"}, began)
}
