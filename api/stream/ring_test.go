package stream

import (
	"bytes"
	"encoding/json"
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

// FuzzPartialLinesAreOneText splits a text into partial lines: a listener receives
// the same text.
func FuzzPartialLinesAreOneText(f *testing.F) {
	f.Add([]byte("a€b😀c"), uint8(1))
	f.Add([]byte("€€€\xff\xe2\x82"), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		n := int(size%7) + 1
		b := builder{text: true}
		for cut := data; ; cut = cut[n:] {
			if len(cut) <= n {
				b.add(v1.Line{Data: cut})
				break
			}
			b.add(v1.Line{Data: cut[:n], Partial: true})
		}
		b.close()
		require.Len(t, b.done, 1)
		require.Empty(t, b.held)
		var got, want string
		require.NoError(t, json.Unmarshal([]byte(`"`+string(b.done[0].text)+`"`), &got))
		theirs, err := json.Marshal(string(data) + "\n")
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(theirs, &want))
		require.Equal(t, want, got)
	})
}
