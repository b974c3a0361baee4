package journal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestHistoryOutlivesARotation rotates a file away while its lines are read: a reader gets the
// lines that are still there, in order, and no error.
func TestHistoryOutlivesARotation(t *testing.T) {
	d := Directory{Path: t.TempDir(), FileSize: 64 << 10, Files: 2}
	j := open(t, d)
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			write(t, j, lines(i, i+1))
		}
	}
	fill(0, 2500)
	n := 0
	for r, err := range j.Backward("", end(j)) {
		require.NoError(t, err)
		require.Equal(t, string(line(2499-n).Data), string(r.Line.Data))
		if n++; n == 5 {
			fill(2500, 3700)
		}
	}
	require.GreaterOrEqual(t, n, 900, "those of the newer file")

	n = 0
	require.NoError(t, j.Since(t.Context(), v1.ServerConsole, time.Time{}, func(l v1.Line) bool {
		if n++; n == 5 {
			fill(3700, 4900)
		}
		return true
	}))
	require.GreaterOrEqual(t, n, 1000)
}
