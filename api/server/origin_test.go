package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestOrigin(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.settings.change(func(c *v1.Config) { c.Server.AllowedOrigins = []string{"https://panel.example"} })
	for origin, ok := range map[string]bool{
		"https://panel.example": true, h.base: true, "http://panel.example": false, "https://evil.example": false, "null": false,
		"https://panel.example.evil.example": false,
	} {
		_, resp, err := h.dialSocket("/ws/mc", http.Header{"Authorization": {"Bearer " + adminToken}, "Origin": {origin}})
		require.Equal(t, ok, err == nil, origin)
		if !ok {
			require.Equal(t, 403, resp.StatusCode)
		}
	}
}

// page is a request that a web page may make a browser send.
type page struct {
	host, header string
	allowed      bool
}

// send sends it to a public route, to one that changes the store, and as the
// handshake of a WebSocket. All of them must succeed, or none.
func (p page) send(t *testing.T, h *harness) {
	t.Helper()
	before := h.store.Revision()
	for request, good := range map[string]int{
		"GET /readyz HTTP/1.1\n": 200, "GET /containers HTTP/1.1\n": 200, "POST /volumes HTTP/1.1\nContent-Length: 0\n": 201,
		"GET /ws HTTP/1.1\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n": 101,
	} {
		c := h.dial()
		request += "Host: " + p.host + "\n"
		c.send(request + "Accept: application/vnd.berthv1+json\n" + p.header + "\n")
		resp, err := http.ReadResponse(c.r, nil)
		require.NoError(t, err)
		if !p.allowed {
			good = 403
			require.Contains(t, []string{"origin_denied", "host_denied"}, resp.Header.Get("X-Error-Code"), p)
		}
		require.Equal(t, good, resp.StatusCode, "%v %s", p, request)
	}
	if !p.allowed {
		require.Equal(t, before, h.store.Revision(), p)
	}
}

// TestPagesOfOtherSites: without authorization, requests of foreign pages are refused.
func TestPagesOfOtherSites(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) {
		c.Authorization.Enabled = false
		c.Server.AllowedOrigins = []string{"https://panel.example", "*"}
	})
	own := strings.TrimPrefix(h.base, "http://")
	for _, p := range []page{
		{own, "", true}, {"localhost", "", true}, {"LOCALHOST:8070", "", true}, {"127.8.9.1:1", "", true}, {"[::1]:8070", "", true}, {"[::1]", "", true},
		{own, "Origin: http://" + own + "\nSec-Fetch-Site: same-origin\n", true}, {own, "Sec-Fetch-Site: none\n", true},
		{own, "Origin: https://panel.example\nSec-Fetch-Site: cross-site\n", true}, {"panel.example", "Origin: https://panel.example\n", true},
		{"evil.example", "", false}, {"evil.example:8070", "Origin: http://evil.example:8070\n", false},
		{"10.0.0.1", "", false}, {"0.0.0.0:8070", "", false}, {"127.0.0.1.evil.example", "", false}, {"localhost.evil.example", "", false}, {"[::]", "", false},
		{own, "Origin: http://evil.example\n", false}, {own, "Origin: null\n", false}, {own, "Origin: http://localhost:1\n", false}, {own, "Origin: %\n", false},
		{own, "Sec-Fetch-Site: cross-site\n", false}, {own, "Sec-Fetch-Site: same-site\n", false}, {own, "Sec-Fetch-Site: x\n", false},
	} {
		p.send(t, h)
	}
	c := h.dial()
	c.send("GET http://evil.example/containers HTTP/1.1\nHost: localhost\nAccept: application/vnd.berthv1+json\n\n")
	status, _ := c.answer()
	require.Equal(t, 403, status, "also in the URL")

	h.settings.change(func(c *v1.Config) { c.Authorization.AllowInsecure, c.Server.Host = true, "berth.lan" })
	for _, p := range []page{
		{"10.0.0.1:8070", "", true}, {"[2001:db8::1]", "", true}, {"berth.lan:8070", "", true}, {"Berth.LAN", "", true},
		{"evil.example", "", false}, {"10.0.0.1", "Origin: http://evil.example\n", false}, {"10.0.0.1", "Sec-Fetch-Site: cross-site\n", false},
	} {
		p.send(t, h)
	}
}

// TestPagesNeedToken: with authorization a request may name any host.
func TestPagesNeedToken(t *testing.T) {
	h := newHarness(t)
	c := h.dial()
	c.send("GET /containers HTTP/1.1\nSec-Fetch-Site: cross-site\n" + headers + "\n")
	status, _ := c.answer()
	require.Equal(t, 200, status)
	_, resp, err := websocket.DefaultDialer.Dial(strings.Replace(h.base, "http", "ws", 1)+"/ws", http.Header{"Origin": {"http://evil.example"}, "Authorization": {"Bearer " + adminToken}})
	require.Error(t, err)
	require.Equal(t, 403, resp.StatusCode, "as before")
}
