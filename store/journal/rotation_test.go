package journal

import (
	"errors"
	"os"
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

// TestTornTailStaysAway: a kill or a full disk cuts an append, and the other role writes next. The cut records
// do not come back when the segments of that role are rotated away.
func TestTornTailStaysAway(t *testing.T) {
	for _, killed := range []bool{true, false} {
		d := Directory{Path: t.TempDir(), FileSize: 4 << 10, Files: 2}
		j := open(t, d)
		write(t, j, lines(0, 10))
		good := j.segments("")[0]
		cut := appendRecord(nil, line(10))
		if !killed { // of several records: the first ones are whole
			cut = append(cut, cut...)
		}
		text, err := os.ReadFile(j.path(good))
		require.NoError(t, err)
		require.NoError(t, errors.Join(j.close(), os.WriteFile(j.path(good), append(text, cut[:len(cut)-5]...), 0o600)))
		if killed {
			j = open(t, d)
		}
		n := 10
		for ; n == 10 || j.segments(v1.InstallConsole)[0].start == good.end; n++ {
			writeAs(t, j, v1.InstallConsole, lines(n, n+1))
		}
		cursors := []Cursor{j.Cursor(good.end), j.Cursor(good.end + 1)}
		j = open(t, d)
		require.Equal(t, lines(0, 10), tail(t, j, 1000)[:10])
		require.NotEqual(t, line(10), tail(t, j, 1000)[10], "it was the installer's, and is removed")
		for _, c := range cursors {
			_, known, err := j.Find(c)
			require.NoError(t, err)
			require.True(t, known)
		}
	}
}
