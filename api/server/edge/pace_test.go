package edge

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPaced: only the time in which the daemon waits for the client counts.
func TestPaced(t *testing.T) {
	clock := time.Unix(0, 0)
	now := func() time.Time { return clock }
	client := func(wait time.Duration, n int) io.Reader {
		return paced(now, readerFunc(func(p []byte) (int, error) {
			clock = clock.Add(wait)
			return min(n, len(p)), nil
		}))
	}
	read := func(r io.Reader, pause time.Duration) (got int, err error) {
		buf := make([]byte, 256<<10)
		for i := 0; i < 1000 && err == nil; i++ {
			var n int
			n, err = r.Read(buf)
			got += n
			clock = clock.Add(pause)
		}
		return got, err
	}
	got, err := read(client(time.Second, 1), 0)
	require.ErrorIs(t, err, error(errTimeout), "a byte a second")
	require.Equal(t, 30, got)
	_, err = read(client(29*time.Second, leastRate/2-1), 0)
	require.ErrorIs(t, err, error(errTimeout))
	for wait, n := range map[time.Duration]int{time.Second: 2 << 10, 15 * time.Second: 30 << 10, 0: 1} {
		_, err = read(client(wait, n), time.Minute)
		require.NoError(t, err, "what the daemon itself takes is not counted")
	}
	broken := errors.New("broken")
	r := paced(now, readerFunc(func([]byte) (int, error) { clock = clock.Add(time.Hour); return 0, broken }))
	_, err = r.Read(nil)
	require.ErrorIs(t, err, broken)
}
