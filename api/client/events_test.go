package client

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

func transition(seq int, epoch, data string) string {
	return fmt.Sprintf(`{"event":"event","container":"mc","data":%q,"seq":%d,"epoch":%q,"time":"2026-01-02T03:04:05Z"}`, data, seq, epoch)
}

func TestWatchResumes(t *testing.T) {
	const state = `{"event":"event","container":"new","data":"installing","time":"2026-01-02T03:04:05Z"}`
	c, requests := script(t,
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
	c, _ := script(t, connection{messages: []string{transition(1, "e", "ready")}, code: websocket.CloseGoingAway})
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
	c, requests := script(t, connection{messages: []string{transition(1, "e", "ready")}, code: websocket.CloseGoingAway})
	c.options.Retry = -1
	var got []error
	for _, err := range c.Events().Watch(t.Context(), Cursor{}) {
		got = append(got, err)
	}
	require.Equal(t, []error{nil, &CloseError{websocket.CloseGoingAway, "reason"}}, got)
	require.Len(t, *requests, 1)
}
