package node_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	"berth/hack/test/paneltest"
)

// TestSocketBomb: a message is small also when it is decompressed, or left out.
func TestSocketBomb(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dialer := websocket.Dialer{EnableCompression: true}
	conn, response, err := dialer.Dial(strings.Replace(w.URL, "http", "ws", 1)+atAlpha+"/ws", http.Header{"Origin": {w.panel.URL}})
	require.NoError(t, err)
	_ = response.Body.Close()
	defer conn.Close()
	require.Contains(t, response.Header.Get("Sec-WebSocket-Extensions"), "permessage-deflate")
	next := func() string {
		var e paneltest.Event
		for e.Event = "stats"; e.Event == "stats" || e.Event == "status"; {
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(3*time.Minute)))
			require.NoError(t, conn.ReadJSON(&e))
		}
		return e.Event
	}
	auth := map[string]any{"event": "auth", "args": []string{token(t, []string{"*"}, nil)}}
	require.NoError(t, conn.WriteJSON(auth))
	require.Equal(t, "auth success", next())
	for _, padding := range []int{32 << 10, 1 << 20, 3 << 20} {
		require.NoError(t, conn.WriteJSON(map[string]any{"event": "set state", "args": []string{"dance"}, "padding": strings.Repeat("x", padding)}))
	}
	require.NoError(t, conn.WriteJSON(map[string]any{"event": "set state", "args": []string{"dance"}}))
	require.Equal(t, "daemon error", next())
	require.NoError(t, conn.WriteJSON(auth))
	require.Equal(t, "auth success", next(), "only one was carried out")
}

// TestFloodOfSockets: sockets without a token push each other out and keep no customer out, and those with tokens of one server
// are bounded.
func TestFloodOfSockets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.panel.SetServer(t, strings.ReplaceAll(w.server(""), alpha, beta))
	w.stop()
	w.run(t)
	dial := func() *paneltest.Socket {
		s, status := w.Dial(t, alpha, w.panel.URL)
		require.Equal(t, 101, status)
		return s
	}
	owner := w.open(t, "*")
	owner.Want("status", "offline")
	first := dial()
	for range 300 { // more than requests of one address may be at once
		dial()
	}
	code, reason := first.Closed()
	require.Equal(t, 1006, code)
	require.NotContains(t, reason, "timeout")
	foreign := token(t, []string{"*"}, map[string]any{"server_uuid": beta}) // it is taken, and can do nothing
	for n := range 129 {
		s := dial()
		s.Send("auth", foreign)
		if n < 128 {
			s.Want("auth success", "")
			continue
		}
		code, reason = s.Closed()
		require.Equal(t, 1006, code)
		require.NotContains(t, reason, "timeout")
	}
	owner.Send("set state", "dance")
	owner.Want("daemon error", "")
	w.open(t, "*").Want("status", "offline")
}

// TestHostileLinks: what a customer may try with links of his own server.
func TestHostileLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	upload := func(directory, body, kind string) paneltest.Answer {
		t.Helper()
		return w.Do(t, "POST", "/upload/file?token="+link(t, "file-upload", nil)+"&directory="+directory, body, "Content-Type", kind, "Authorization", "")
	}
	part := func(header string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\n" + header + "\r\nx\r\n--b--\r\n"
	}
	const form = "multipart/form-data; boundary=b"
	require.Equal(t, 200, upload("/", part("X: "+strings.Repeat("x", 1000)+"\r\n"), form).Status)
	require.Equal(t, 400, upload("/", part("X: "+strings.Repeat("x", 100_000)+"\r\n"), form).Status)
	require.Equal(t, 400, upload("/", strings.Repeat("--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nx\r\n", 200)+"--b--", form).Status)
	for _, directory := range []string{"/", "/.", "/notes/..", "//", "/notes/../notes/.."} {
		body, kind := "--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"secret.txt\"\r\n\r\nx\r\n--b--\r\n", form
		require.Equal(t, 403, upload(directory, body, kind).Status, directory)
	}
	for _, directory := range []string{"/..", "/notes/../..", "/game.txt", "%00", "/" + strings.Repeat("x", 5000)} {
		require.NotEqual(t, 200, upload(directory, part(""), form).Status, directory)
	}
	a := w.Want(t, 200, "GET", atAlpha+"/files/list-directory?directory=/", nil)
	require.Equal(t, 3, strings.Count(a.Body, `"name"`), a.Body)

	// A link that many use at the same time is used once.
	once := link(t, "file-download", map[string]any{"file_path": "/game.txt"})
	var all sync.WaitGroup
	statuses := make(chan int, 20)
	for range cap(statuses) {
		all.Go(func() {
			r, err := http.Get(w.URL + "/download/file?token=" + once)
			if err == nil {
				statuses <- r.StatusCode
				_ = r.Body.Close()
			}
		})
	}
	all.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	require.Equal(t, map[int]int{200: 1, 404: 19}, count, fmt.Sprint(count))
}
