package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
)

// heap returns the bytes of the heap in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// flooded returns a server with a container whose console holds 4 MB, which JSON
// makes six times as long.
func flooded(t *testing.T) *harness {
	h := newHarness(t)
	h.ready("mc")
	text := strings.Repeat("\x01", 400)
	for range 100 {
		texts := make([]string, 100)
		for i := range texts {
			texts[i] = text
		}
		h.print("mc", v1.ServerConsole, texts...)
	}
	return h
}

// checkHistory reads the console history of a flooded container. Nothing of it
// stays in memory.
func checkHistory(h *harness) {
	c := h.open("/ws/mc?tail=10000")
	c.next()
	logs := c.next()["data"].(string)
	require.Greater(h.t, len(logs), 500_000)
	require.Less(h.t, len(logs), 4<<20/6+1, "its encoded size is bounded")
	require.True(h.t, strings.HasSuffix(logs, "\x01\n"))
}

// TestUnreadHistory: clients that do not read their history share the memory of all answers, and are refused when none
// is left. The administrator is not.
func TestUnreadHistory(t *testing.T) {
	h := flooded(t)
	var tokens []string
	for range 4 {
		tokens = append(tokens, h.mint(object{}))
	}
	before := heap()
	for i := range 120 {
		c, _, err := h.dialSocket("/ws/mc?tail=10000&token="+tokens[i%len(tokens)], nil)
		require.NoError(t, err)
		c.next() // its history is on the way
	}
	statuses := map[int]int{}
	for i := range 120 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.base, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "GET /containers/mc/logs?tail=10000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nAccept: %s\r\n\r\n",
			tokens[i%len(tokens)], vendorType)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil) // the headers only; Close would read the body
		require.NoError(t, err)
		statuses[resp.StatusCode]++
	}
	require.Less(t, heap(), before+uint64(limit.Answers().All)<<20)
	require.Positive(t, statuses[429], statuses)
	require.Equal(t, 120, statuses[200]+statuses[429], statuses)
	checkHistory(h)
	a := h.do(request{method: "GET", path: "/containers/mc/logs?tail=100", token: tokens[0]})
	require.Len(t, a.json["lines"], 100, "a small answer is not counted")
}

// TestRefusedHistory: where no memory is left for a history, a socket ends with 1013, and a request has 429.
func TestRefusedHistory(t *testing.T) {
	h := flooded(t)
	leave, err := h.server.handlers.sockets.front.Hold("", limit.Answers().All<<20)
	require.NoError(t, err)
	var leaves []func()
	for ; err == nil; leave, err = h.server.handlers.sockets.front.Hold("", 1<<20) {
		leaves = append(leaves, leave)
	}
	const text = "Too many large answers are being sent; retry when one of them was read, or request less at once"
	code, reason := h.open("/ws/mc?tail=10000").closed()
	require.Equal(t, []any{1013, text}, []any{code, reason})
	c := h.open("/ws/mc?tail=10")
	c.next()
	require.Equal(t, "logs", c.next()["event"])
	c.send("request_logs", "10000")
	code, reason = c.closed()
	require.Equal(t, []any{1013, text}, []any{code, reason})
	h.refuse(429, text, "GET", "/containers/mc/logs?tail=10000", nil)
	for _, leave := range leaves {
		leave()
	}
	checkHistory(h)
	require.Len(t, h.must("GET", "/containers/mc/logs?tail=300", nil).json["lines"], 300)
}

func TestSocketsPerToken(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	token := h.mint(object{})
	child := mintWith(h, token, "{}").json["token"].(string)
	for i := range 64 {
		c, _, err := h.dialSocket("/ws/mc?tail=0&token="+[]string{token, child}[i%2], nil)
		require.NoError(t, err)
		c.next()
	}
	c, _, err := h.dialSocket("/ws/mc?tail=0&token="+token, nil)
	require.NoError(t, err)
	code, reason := c.closed()
	require.Equal(t, 1013, code)
	require.Equal(t, "Token has 64 open sockets and transfers, the most for one token: close some", reason)
	a := h.do(request{method: "GET", path: "/containers/mc/logs/content", token: child})
	require.Equal(t, []any{429, "too_many_sessions"}, []any{a.status, a.header.Get("X-Error-Code")})
	other := h.mint(object{})
	c, _, err = h.dialSocket("/ws/mc?tail=0&token="+other, nil)
	require.NoError(t, err)
	require.Equal(t, "event", c.next()["event"], "another token has its own share")
	h.open("/ws/mc?tail=0").next()
}

// TestUnreadLogs: a client that requests the history again and again without
// reading it takes a few times 4 MiB.
func TestUnreadLogs(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	for range 150 {
		h.print("mc", v1.ServerConsole, strings.Repeat("x", 30<<10))
	}
	c := h.open("/ws/mc?tail=0")
	c.next()
	before := heapNow()
	for range 40 {
		c.send("request_logs", "10000")
	}
	require.Never(t, func() bool { return grown(before) > 64 }, 2*time.Second, 5*time.Millisecond)
	for range 40 {
		m := c.next()
		require.Equal(t, "logs", m["event"])
		require.Greater(t, len(m["data"].(string)), 3<<20)
	}
}

// TestRevocationEndsLogsContent: a download of a console ends when its token is revoked.
func TestRevocationEndsLogsContent(t *testing.T) {
	h := flooded(t)
	for range 400 { // 12 MB more: buffers of sockets hold 4 MiB
		h.print("mc", v1.ServerConsole, strings.Repeat("x", 30<<10))
	}
	token := h.mint(object{"scopes": []string{"read"}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.base, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(64<<10)) // so that the download does not fit into it
	_, err = fmt.Fprintf(conn, "GET /containers/mc/logs/content?token=%s HTTP/1.1\r\nHost: x\r\n\r\n", token)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	h.must("DELETE", "/auth/tokens/"+onlyToken(h)["id"].(string), nil)
	require.Eventually(t, func() bool { return h.server.sessions.Len() == 0 }, time.Minute, 10*time.Millisecond)
	_, err = io.Copy(io.Discard, resp.Body)
	require.Error(t, err)
}
