package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// connection is what a daemon does with one request: it answers with status, or
// sends messages and closes the stream with code (0: it breaks the connection).
type connection struct {
	status   int
	messages []string
	code     int
}

// script returns a client of a daemon that serves these streams, one after the other,
// and the addresses that were requested.
func script(t *testing.T, list ...connection) (c *Client, requests *[]string) {
	t.Helper()
	requests = new([]string)
	upgrader := websocket.Upgrader{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, r.URL.RequestURI())
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

// serve returns a client of a daemon that answers each request with status and body.
// requests receives "METHOD /path body" of each.
func serve(t *testing.T, status int, body string) (c *Client, requests *[]string) {
	t.Helper()
	requests = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		*requests = append(*requests, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(text)))
		if r.Header.Get("Accept") != Vendor || r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("X-Error-Code", string(v1.ContainerNotFound))
		w.Header().Set("X-Request-Id", "r1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	c, err := New(Options{URL: server.URL + "/", Token: "secret"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, requests
}
