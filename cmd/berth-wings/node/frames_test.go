package node

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

// TestFrames: a browser receives each message as a whole and in order, whatever its size, and answers to its pings.
func TestFrames(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	n := &Node{ctx: ctx}
	defer n.jobs.Wait()
	sockets := make(chan *socket, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{EnableCompression: true}).Upgrade(w, r, nil)
		if err == nil {
			s := &socket{n: n, conn: conn, pace: rate.NewLimiter(rate.Inf, 1), wake: make(chan struct{}, 1), done: make(chan struct{})}
			s.paceControl()
			sockets <- s
			s.read()
		}
	}))
	defer server.Close()
	dialer := websocket.Dialer{EnableCompression: true}
	conn, response, err := dialer.Dial(strings.Replace(server.URL, "http", "ws", 1), nil)
	require.NoError(t, err)
	_ = response.Body.Close()
	defer conn.Close()
	s := <-sockets
	defer s.close()
	n.background(s.write)
	const wrapped = len(`{"event":"","args":[""]}`)
	sizes := []int{wrapped, 125, 126, 127, 4095, 4096, 65535, 65536, maxLine}
	for i := range 10_000 {
		sizes = append(sizes, wrapped+len(strconv.Itoa(i)))
	}
	var sent []event
	for i, size := range sizes {
		text := strconv.Itoa(i)
		e := event{Args: []string{(text + strings.Repeat("x", max(0, size-wrapped)))[:size-wrapped]}}
		sent = append(sent, e)
		s.put(e)
	}
	for i, e := range sent {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(3*time.Minute)))
		kind, text, err := conn.ReadMessage()
		require.NoError(t, err)
		require.Equal(t, websocket.TextMessage, kind)
		require.Len(t, text, sizes[i])
		var got event
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, e.Args, got.Args)
	}
	longest := strings.Repeat("p", 125)
	var pongs []string
	conn.SetPongHandler(func(text string) error {
		if pongs = append(pongs, text); len(pongs) == 2 {
			return io.EOF // for ReadMessage
		}
		return nil
	})
	for _, text := range []string{"", longest} {
		require.NoError(t, conn.WriteControl(websocket.PingMessage, []byte(text), time.Now().Add(writeTime)))
	}
	_, _, err = conn.ReadMessage()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"", longest}, pongs)
}
