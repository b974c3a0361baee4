package stream

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// flood writes a MiB to a console.
func flood(t *testing.T, h *Hub, id string) {
	t.Helper()
	data := bytes.Repeat([]byte("x"), 1000)
	for i := range 16 {
		var list []v1.Line
		for j := range 64 {
			list = append(list, v1.Line{Time: time.Unix(int64(i), int64(j)), Data: data})
		}
		require.NoError(t, h.Append(id, v1.ServerConsole, list))
	}
}

func TestMemoryOfAllConsolesIsBounded(t *testing.T) {
	h := New(t.TempDir(), Options{})
	var stuck []*Listener
	const consoles = 40
	for i := range consoles {
		l, err := h.Listen(fmt.Sprint(i))
		require.NoError(t, err)
		stuck = append(stuck, l)
		flood(t, h, fmt.Sprint(i))
	}
	require.Greater(t, h.rings.Load(), int64(allRings))
	require.Less(t, h.rings.Load(), int64(allRings+consoles*3*minRing))
	for _, l := range stuck[1:] {
		l.Close()
	}
	require.NoError(t, h.Remove("0"))
	require.Zero(t, h.rings.Load())
}

func TestConsoleKeepsItsQuotaOnly(t *testing.T) {
	h := New(t.TempDir(), Options{})
	l, err := h.Listen("mc")
	require.NoError(t, err)
	defer l.Close()
	for range 8 {
		flood(t, h, "mc")
	}
	require.Less(t, h.rings.Load(), int64(5<<20))
	require.Greater(t, h.rings.Load(), int64(3<<20))
}

func TestRingDropsLinesThatAllHaveRead(t *testing.T) {
	h := New(t.TempDir(), Options{})
	flood(t, h, "mc")
	require.Zero(t, h.rings.Load(), "nobody listens")
	l, err := h.Listen("mc")
	require.NoError(t, err)
	defer l.Close()
	flood(t, h, "mc")
	require.Greater(t, h.rings.Load(), int64(1<<20))
	for range 200 {
		if c := l.cursors[1]; c.done.Load() == c.log.end.line { // the server's
			break
		}
		_, err := l.Next(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, h.Append("mc", v1.ServerConsole, []v1.Line{{Data: []byte("y")}}))
	require.Less(t, h.rings.Load(), int64(64<<10))
}
