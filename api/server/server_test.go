package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// rawConn is a connection on which a test writes any bytes.
type rawConn struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (h *harness) dial() *rawConn {
	h.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.base, "http://"))
	require.NoError(h.t, err)
	require.NoError(h.t, c.SetDeadline(time.Now().Add(3*time.Minute)))
	h.t.Cleanup(func() { _ = c.Close() })
	return &rawConn{h.t, c, bufio.NewReader(c)}
}

func (r *rawConn) send(text string) {
	r.t.Helper()
	_, err := io.WriteString(r.Conn, strings.ReplaceAll(text, "\n", "\r\n"))
	require.NoError(r.t, err)
}

// answer reads one response.
func (r *rawConn) answer() (int, string) {
	r.t.Helper()
	resp, err := http.ReadResponse(r.r, nil)
	require.NoError(r.t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(body)
}

const headers = "Host: x\nAuthorization: Bearer " + adminToken + "\nAccept: application/vnd.berthv1+json\n"

func TestMalformedRequests(t *testing.T) {
	h := newHarness(t)
	for text, want := range map[string]string{
		"GARBAGE-secret\n\n":                                                `400 {"error":"Malformed request"}`,
		"GET / HTTP/1.1\nbad header secret\n\n":                             `400 {"error":"Malformed request"}`,
		"GET / HTTP/1.1\n" + headers + "X: a\n b\n\n":                       `400 {"error":"Malformed request: a header is folded over several lines"}`,
		"GET / HTTP/1.1\nX: a\n\tb\nHost: x\n\n":                            `400 {"error":"Malformed request: a header is folded over several lines"}`,
		"GET /healthz HTTP/1.1\nHost: x\nX: a\n b\n\n":                      `400 {"error":"Malformed request: a header is folded over several lines"}`,
		"BREW /containers HTTP/1.1\nHost: x\n\n":                            `401 {"error":"Missing or invalid authorization token"}`,
		"BREW /nowhere HTTP/1.1\n" + headers + "\n":                         `404 {"error":"Route not found"}`,
		"BREW /containers HTTP/1.1\n" + headers + "\n":                      `405 {"error":"Method not allowed"}`,
		"GET / HTTP/1.1\nX: " + strings.Repeat("s", 64<<10) + "\n\n":        `431 {"error":"Request headers are too large"}`,
		"POST /auth/tokens HTTP/1.1\n" + headers + "Content-Length: -5\n\n": `400 {"error":"Malformed request"}`,
		"GET /containers/%zz HTTP/1.1\n" + headers + "\n":                   `404 {"error":"Container not found"}`,
		"GET /network/ports/%zz/1 HTTP/1.1\n" + headers + "\n":              `404 {"error":"Port not found in pool"}`,
	} {
		c := h.dial()
		c.send(text)
		status, body := c.answer()
		require.Equal(t, want, fmt.Sprint(status, " ", body), text)
	}
}

// TestRefusedBodyIsDrained sends a body that looks like a request to handlers that
// do not read it.
func TestRefusedBodyIsDrained(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	hidden := "POST /containers/mc/start HTTP/1.1\n" + headers + "\n"
	hidden = strings.ReplaceAll(hidden, "\n", "\r\n") + strings.Repeat(" ", 20<<10)
	for _, head := range []string{
		"POST /nowhere HTTP/1.1\n" + headers,
		"POST /containers HTTP/1.1\nHost: x\n",
		"POST /containers/mc/kill HTTP/1.1\n" + headers,
		"GET /healthz HTTP/1.1\n" + headers,
		"POST /auth/tokens HTTP/1.1\n" + headers + "Content-Encoding: gzip\n",
	} {
		for _, length := range []string{fmt.Sprintf("Content-Length: %d\n\n", len(hidden)), "Transfer-Encoding: chunked\n\n"} {
			c := h.dial()
			c.send(head + length)
			if strings.HasPrefix(length, "Transfer") {
				c.send(fmt.Sprintf("%x\n", len(hidden)))
				_, err := io.WriteString(c.Conn, hidden)
				require.NoError(t, err)
				c.send("\n0\n\n")
			} else {
				_, err := io.WriteString(c.Conn, hidden)
				require.NoError(t, err)
			}
			c.answer()
			c.send("GET /healthz HTTP/1.1\nHost: x\n\n")
			status, body := c.answer()
			require.Equal(t, `200 {"status":"ok"}`, fmt.Sprint(status, " ", body), head)
		}
	}
	require.Equal(t, "stopped", h.must("GET", "/containers/mc", nil).json["power"])
}

// TestAmbiguousBodyClosesConnection sends a body whose end is ambiguous, and another
// request behind it.
func TestAmbiguousBodyClosesConnection(t *testing.T) {
	h := newFileHarness(t)
	upload := "PUT " + h.at("files/content", "path", "a") + " HTTP/1.1\n"
	for _, head := range []string{upload, "POST /auth/tokens HTTP/1.1\n", "POST /nowhere HTTP/1.1\n"} {
		for text, status := range map[string]int{
			"Transfer-Encoding: chunked\n\n-0\n\n":                     400,
			"Transfer-Encoding: chunked\n\n0x2\n{}\n0\n\n":             400,
			"Transfer-Encoding: chunked\n\n 2\n{}\n0\n\n":              400,
			"Content-Length: 4\nTransfer-Encoding: chunked\n\n0\n\n":   200,
			"Transfer-Encoding: chunked\ncontent-length: 9\n\n0\n\n\n": 200,
		} {
			c := h.dial()
			c.send(head + headers + text + "GET /healthz HTTP/1.1\nHost: x\n\n")
			got, _ := c.answer()
			if head != "POST /nowhere HTTP/1.1\n" {
				require.Equal(t, status, got, head+text)
			}
			_, err := c.r.ReadByte()
			require.Error(t, err, head+text)
		}
	}
}

func TestLargeUnreadBodyClosesConnection(t *testing.T) {
	h := newHarness(t)
	c := h.dial()
	c.send("POST /nowhere HTTP/1.1\n" + headers + "Content-Length: 100000000\n\n")
	c.send(strings.Repeat("x", 16<<10))
	status, _ := c.answer()
	require.Equal(t, 404, status)
	_, err := c.r.ReadByte()
	require.Error(t, err)
}

func TestStuckClients(t *testing.T) {
	h := newHarness(t)
	var clients []*rawConn
	for _, text := range []string{
		"GET /containers HTTP/1.1\nHost:",
		"POST /auth/tokens HTTP/1.1\n" + headers + "Content-Length: 100\n\n{",
	} {
		c := h.dial()
		c.send(text)
		clients = append(clients, c)
	}
	for _, c := range clients {
		status, body := c.answer()
		require.Equal(t, `408 {"error":"Request timed out"}`, fmt.Sprint(status, " ", body))
		_, err := c.r.ReadByte()
		require.Error(t, err, "the connection is closed")
	}
}

// TestConnectionsPerAddress: a connection above the limit closes the oldest one
// without a token.
func TestConnectionsPerAddress(t *testing.T) {
	h := newHarness(t)
	ask := func(c *rawConn, head string) {
		c.send("GET /network/ports HTTP/1.1\n" + head + "\n")
		c.answer()
	}
	good := h.dial()
	ask(good, headers)
	var open []*rawConn
	for range limit.Anonymous().Tenant + 2 {
		c := h.dial()
		ask(c, "Host: x\n")
		open = append(open, c)
	}
	for i, c := range open[:2] {
		_, err := c.r.ReadByte()
		require.Error(t, err, i)
	}
	for _, c := range open[2:] {
		ask(c, headers)
	}
	ask(good, headers)
}

// lines is a log that a test can read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestPanic(t *testing.T) {
	log := &lines{}
	h := newHarnessWith(t, func(d *Deps) { d.Log = slog.New(slog.NewTextHandler(log, nil)) },
		route{method: get, path: "/panic", scope: v1.ScopeRead, endpoint: raw(func(*call) error { panic("at /secret/path") })})
	a := h.do(request{method: "GET", path: "/panic"})
	require.Equal(t, 500, a.status)
	require.Equal(t, `{"error":"Internal server error"}`, a.raw)
	require.Contains(t, log.String(), "at /secret/path")
	require.Equal(t, 200, h.do(request{method: "GET", path: "/healthz"}).status)
}

func TestFailedStore(t *testing.T) {
	h := newHarness(t)
	h.refuseStore()
	h.refuse(500, "Database operation failed", "POST", "/network/ports", object{"ip": "::", "port": 1, "protocol": "tcp"})
}

// TestCauseIsInCodeAndLog: the cause of an error is in its code and in the log, but
// not in its text.
func TestCauseIsInCodeAndLog(t *testing.T) {
	log := &lines{}
	h := newHarnessWith(t, func(d *Deps) { d.Log = slog.New(slog.NewTextHandler(log, nil)) },
		route{method: post, path: "/full", scope: v1.ScopeRead, endpoint: raw(func(*call) error { return fmt.Errorf("%w: %w", store.ErrFailed, store.ErrDiskFull) })})
	h.container("away", h.volume())
	a := h.call("POST", "/containers/away/command", object{"command": "x"})
	require.Equal(t, 503, a.status)
	require.Equal(t, "engine_unavailable", a.header.Get("X-Error-Code"))
	require.Equal(t, "2", a.header.Get("Retry-After"))
	require.NotContains(t, a.raw, "secret")
	require.Contains(t, log.String(), "/secret.sock")

	c := h.dial()
	c.send("POST /full HTTP/1.1\n" + headers + "\n")
	resp, err := http.ReadResponse(c.r, nil)
	require.NoError(t, err)
	require.Equal(t, "500 store_disk_full", fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("X-Error-Code")))
	require.Contains(t, log.String(), "disk is full")
}

func TestAuthFailureLog(t *testing.T) {
	log := &lines{}
	h := newHarnessWith(t, func(d *Deps) { d.Log = slog.New(slog.NewTextHandler(log, nil)) })
	h.settings.change(func(c *v1.Config) { c.Server.TrustedProxies = []string{"127.0.0.0/8"} })
	for range 20 {
		h.do(request{method: "GET", path: "/containers", token: "berth_feedfacefeedfacefeedfacefeedface", header: http.Header{"X-Forwarded-For": {"6.6.6.6, 9.9.9.9"}}})
	}
	text := log.String()
	require.LessOrEqual(t, strings.Count(text, "authorization failed"), 2)
	require.Contains(t, text, "address=9.9.9.9", "the hop before the trusted proxy")
	require.NotContains(t, text, "feedface")
	require.NotContains(t, text, "6.6.6.6")
}

// TestForwardedForHeaders: the last address counts, in whichever header it is.
func TestForwardedForHeaders(t *testing.T) {
	log := &lines{}
	h := newHarnessWith(t, func(d *Deps) { d.Log = slog.New(slog.NewTextHandler(log, nil)) })
	h.settings.change(func(c *v1.Config) { c.Server.TrustedProxies = []string{"127.0.0.0/8"} })
	h.do(request{method: "GET", path: "/containers", token: "x", header: http.Header{"X-Forwarded-For": {"6.6.6.6", "9.9.9.9, 127.0.0.2"}}})
	require.Contains(t, log.String(), "address=9.9.9.9")
}

func TestForwardedForOfUntrustedPeer(t *testing.T) {
	log := &lines{}
	h := newHarnessWith(t, func(d *Deps) { d.Log = slog.New(slog.NewTextHandler(log, nil)) })
	h.do(request{method: "GET", path: "/containers", token: "x", header: http.Header{"X-Forwarded-For": {"9.9.9.9"}}})
	require.Contains(t, log.String(), "address=127.0.0.1")
}

func TestShutdown(t *testing.T) {
	h := newHarness(t)
	h.do(request{method: "GET", path: "/healthz"})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	began := time.Now()
	require.NoError(t, h.server.Shutdown(ctx))
	require.Less(t, time.Since(began), 20*time.Second)
	_, err := h.client.Get(h.base + "/healthz")
	require.Error(t, err)
}

func TestContextEndsWithClient(t *testing.T) {
	ended := make(chan error, 1)
	began := make(chan struct{})
	h := newHarnessWith(t, func(*Deps) {}, route{method: post, path: "/work", scope: v1.ScopeRead, endpoint: raw(func(c *call) error {
		ctx, cancel := edge.Context(c.Ctx)
		defer cancel()
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil
	})})
	c := h.dial()
	c.send("POST /work HTTP/1.1\n" + headers + "\n")
	<-began
	c.send("GET /healthz HTTP/1.1\n") // what follows is not the end
	select {
	case <-ended:
		t.Fatal("it has ended while its client is there")
	case <-time.After(time.Second):
	}
	require.NoError(t, c.Close())
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(3 * time.Minute):
		t.Fatal("it goes on without its client")
	}
}
