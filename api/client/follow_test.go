package client

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

// TestFollowResumesBehindTheLastLine breaks the stream twice: before the first message
// with a cursor, and after some.
func TestFollowResumesBehindTheLastLine(t *testing.T) {
	console := func(event, data, line string) string {
		return fmt.Sprintf(`{"event":%q,"data":%q,"time":"2026-01-02T03:04:05Z","line":%q}`, event, data, line)
	}
	c, requests := script(t,
		connection{messages: []string{`{"event":"event","data":"running","time":"2026-01-02T03:04:00Z"}`}},
		connection{messages: []string{console("logs", "zero\n", "0.1"), console("console", "one\n", "0.2"), console("console", "part", "0.3")}},
		connection{messages: []string{console("console", "two\n", "0.4"), `{"event":"stats","cpu_usage":1.5,"time":"2026-01-02T03:04:06Z"}`}, code: websocket.CloseNormalClosure})
	var text strings.Builder
	var last error
	for m, err := range c.Containers().Follow(t.Context(), "mc", OpenOptions{Tail: 7}) {
		last = err
		switch m.Event {
		case EventLogs, EventConsole:
			text.WriteString(m.Data)
		case EventStats:
			stats, err := m.Stats()
			require.NoError(t, err)
			require.InDelta(t, 1.5, stats.CPUUsage, 0)
		}
	}
	require.Equal(t, "zero\none\nparttwo\n", text.String())
	require.EqualError(t, last, "the container is deleted")
	require.Equal(t, []string{"/ws/mc?tail=7", "/ws/mc?tail=7", "/ws/mc?tail=7&since_line=0.3"}, *requests)
}
