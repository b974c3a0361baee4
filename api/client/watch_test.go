package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

// connection is what a daemon does with one request: it answers with status, or
// sends messages and closes the stream with code (0: it breaks the connection).
type connection struct {
	status   int
	messages []string
	code     int
}

// script returns a client of a daemon that serves these streams, one after the other,
// and the addresses that were requested. GET /containers/mc/logs answers with logs.
func script(t *testing.T, logs string, list ...connection) (c *Client, requests *[]string) {
	t.Helper()
	requests = new([]string)
	upgrader := websocket.Upgrader{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, r.URL.RequestURI())
		if strings.HasSuffix(r.URL.Path, "/logs") {
			_, _ = w.Write([]byte(logs))
			return
		}
		next := list[0]
		if len(list) > 1 {
			list = list[1:]
		}
		if next.status != 0 {
			http.Error(w, `{"error":"refused"}`, next.status)
			return
		}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for _, m := range next.messages {
			_ = ws.WriteMessage(websocket.TextMessage, []byte(m))
		}
		if next.code == 0 {
			return
		}
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(next.code, "reason"), time.Now().Add(time.Second))
		_, _, _ = ws.ReadMessage() // until the client has received it
	}))
	t.Cleanup(server.Close)
	c, err := New(Options{URL: server.URL, Retry: time.Millisecond})
	require.NoError(t, err)
	return c, requests
}

func transition(seq int, epoch, data string) string {
	return fmt.Sprintf(`{"event":"event","container":"mc","data":%q,"seq":%d,"epoch":%q,"time":"2026-01-02T03:04:05Z"}`, data, seq, epoch)
}

func TestWatchResumes(t *testing.T) {
	const state = `{"event":"event","container":"new","data":"installing","time":"2026-01-02T03:04:05Z"}`
	c, requests := script(t, "",
		connection{messages: []string{transition(8, "e", "starting"), state, transition(8, "e", "starting"), transition(9, "e", "running")}, code: websocket.CloseTryAgainLater},
		connection{status: http.StatusServiceUnavailable},
		connection{messages: []string{transition(9, "e", "running")}},
		connection{messages: []string{transition(10, "e", "exit")}, code: websocket.CloseGoingAway},
		connection{messages: []string{`{"event":"gap","data":"1","epoch":"f"}`, transition(1, "f", "ready")}},
		connection{status: http.StatusUnauthorized})
	var retries int
	c.options.OnRetry = func(err error) {
		require.Error(t, err)
		retries++
	}
	var got []string
	for m, err := range c.Events().Watch(t.Context(), Cursor{7, "e"}) {
		if err != nil {
			require.Equal(t, http.StatusUnauthorized, StatusOf(err))
			break
		}
		got = append(got, fmt.Sprint(m.Event, m.Seq, m.Data))
	}
	require.Equal(t, []string{"event8starting", "event9running", "event10exit", "gap01", "event1ready"}, got)
	require.Equal(t, []string{"/ws?since=7&epoch=e", "/ws?since=9&epoch=e", "/ws?since=9&epoch=e", "/ws?since=9&epoch=e", "/ws?since=10&epoch=e", "/ws?since=1&epoch=f"}, *requests)
	require.Equal(t, 5, retries)
}

func TestWatchEndsWithContext(t *testing.T) {
	c, _ := script(t, "", connection{messages: []string{transition(1, "e", "ready")}, code: websocket.CloseGoingAway})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.Events().Watch(ctx, Cursor{}) {
		last = err
		cancel()
	}
	require.ErrorIs(t, last, context.Canceled)
}

func TestWatchWithoutRetry(t *testing.T) {
	c, requests := script(t, "", connection{messages: []string{transition(1, "e", "ready")}, code: websocket.CloseGoingAway})
	c.options.Retry = -1
	var got []error
	for _, err := range c.Events().Watch(t.Context(), Cursor{}) {
		got = append(got, err)
	}
	require.Equal(t, []error{nil, &CloseError{websocket.CloseGoingAway, "reason"}}, got)
	require.Len(t, *requests, 1)
}

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

func TestStreamErrors(t *testing.T) {
	c, _ := script(t, "", connection{messages: []string{"pong"}}, connection{code: websocket.ClosePolicyViolation}, connection{status: http.StatusNotFound})
	open := func() error {
		s, err := c.Containers().Open(t.Context(), "mc", 0)
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = s.Next()
		return err
	}
	require.ErrorIs(t, open(), ErrNotBerth)
	var closed *CloseError
	require.ErrorAs(t, open(), &closed)
	require.True(t, closed.Permanent())
	require.False(t, closed.Deleted())
	require.Equal(t, "the daemon closed the stream: reason", closed.Error())
	require.Equal(t, http.StatusNotFound, StatusOf(open()))
	require.True(t, isPermanent(&Error{Status: 404}))
	require.False(t, isPermanent(&Error{Status: 429}))
	require.False(t, isPermanent(errors.New("connection refused")))
}
