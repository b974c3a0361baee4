package client

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

func TestFollowRereadsMissedLines(t *testing.T) {
	console := func(second int, data string) string {
		return fmt.Sprintf(`{"event":"console","data":%q,"time":"2026-01-02T03:04:%02dZ"}`, data, second)
	}
	c, requests := script(t,
		`{"lines":[{"time":"2026-01-02T03:04:02Z","data":"two"},{"time":"2026-01-02T03:04:03Z","data":"three"},{"time":"2026-01-02T03:04:04Z","data":"four"}]}`,
		connection{messages: []string{`{"event":"logs","data":"zero\n","time":"2026-01-02T03:04:00Z"}`, console(1, "one\n"), console(2, "two\n"), console(2, "part")}},
		connection{messages: []string{console(4, "four\n"), console(5, "five\n"), `{"event":"stats","cpu_usage":1.5,"time":"2026-01-02T03:04:06Z"}`}, code: websocket.CloseNormalClosure})
	var text strings.Builder
	var last error
	for m, err := range c.Containers().Follow(t.Context(), "mc", 7) {
		last = err
		text.WriteString(m.Data)
		if m.Event == EventStats {
			stats, err := m.Stats()
			require.NoError(t, err)
			require.InDelta(t, 1.5, stats.CPUUsage, 0)
		}
	}
	require.Equal(t, "zero\none\ntwo\npartthree\nfour\nfive\n", text.String())
	require.EqualError(t, last, "the container is deleted")
	require.Equal(t, []string{"/ws/mc?tail=7", "/ws/mc?tail=0", "/containers/mc/logs?tail=10000&since=2026-01-02T03%3A04%3A02Z"}, *requests)
}
