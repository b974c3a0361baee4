package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

const panel = "https://panel.example"

// newPageHarness is a server that a page of panel may use.
func newPageHarness(t *testing.T) *fileHarness {
	t.Helper()
	h := newFileHarness(t)
	h.settings.change(func(c *v1.Config) { c.Server.AllowedOrigins = []string{panel} })
	return h
}

// from returns the header of a page with an origin.
func from(origin string, more ...string) http.Header {
	header := http.Header{"Origin": {origin}}
	for i := 0; i < len(more); i += 2 {
		header.Set(more[i], more[i+1])
	}
	return header
}

func TestPreflight(t *testing.T) {
	h := newPageHarness(t)
	for _, path := range []string{h.at("files/content", "path", "f"), "/containers", "/nowhere", "/ws"} {
		a := h.do(request{method: "OPTIONS", path: path, token: "-", accept: "-",
			header: from(panel, "Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "authorization")})
		require.Equal(t, 204, a.status, path)
		require.Empty(t, a.raw)
		require.Equal(t, panel, a.header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "GET, HEAD, POST, PUT, PATCH, DELETE", a.header.Get("Access-Control-Allow-Methods"))
		require.Equal(t, "600", a.header.Get("Access-Control-Max-Age"))
		require.Equal(t, "Origin", a.header.Get("Vary"))
		require.Empty(t, a.header.Values("Access-Control-Allow-Credentials"))
		allowed := strings.Split(a.header.Get("Access-Control-Allow-Headers"), ", ")
		require.ElementsMatch(t, []string{"Authorization", "Accept", "Content-Type", "Range", "If-Match", "If-None-Match", "Idempotency-Key", "X-Berth-Actor"}, allowed)
	}
	for name, header := range map[string]http.Header{
		"no preflight":   from(panel),
		"no web page":    {"Access-Control-Request-Method": {"PUT"}},
		"nothing at all": nil,
	} {
		a := h.do(request{method: "OPTIONS", path: "/containers", token: "-", header: header})
		require.Equal(t, 401, a.status, name)
	}
	a := h.do(request{method: "GET", path: "/containers", token: "-", header: from(panel, "Access-Control-Request-Method", "PUT")})
	require.Equal(t, 401, a.status, "another method is no preflight")
	a = h.do(request{method: "OPTIONS", path: "/containers", header: from("https://evil.example", "Access-Control-Request-Method", "PUT")})
	require.Equal(t, 403, a.status)
	require.Empty(t, a.header.Values("Access-Control-Allow-Methods"))
}

// TestForeignOriginDoesNothing: a page that is not allowed changes nothing, uses up no
// token, and cannot read the answer.
func TestForeignOriginDoesNothing(t *testing.T) {
	h := newPageHarness(t)
	once := h.mint(object{"remove_on_use": true})
	h.put("f", "old")
	before := h.store.Revision()
	for _, origin := range []string{
		"https://evil.example", "http://panel.example", "https://panel.example:8443", "https://panel.example.evil.example", "null", "%",
		"file://", "https://panel.example/", "https://user@panel.example", strings.Replace(h.base, "http", "ftp", 1), h.base + "/x", "http://127.0.0.1:1",
	} {
		for _, r := range []request{
			{method: "PUT", path: h.at("files/content", "path", "f"), token: once, body: "new"},
			{method: "DELETE", path: h.at("files", "path", "f")},
			{method: "POST", path: "/volumes"},
			{method: "GET", path: "/containers"},
			{method: "GET", path: "/ws"},
			{method: "GET", path: "/healthz"},
			{method: "PUT", path: h.at("files/content", "path", "f"), header: http.Header{"Expect": {"100-continue"}}, body: "new"},
		} {
			header := from(origin)
			for name, values := range r.header {
				header[name] = values
			}
			r.header = header
			a := h.do(r)
			require.Equal(t, "403 Origin is not allowed", fmt.Sprint(a.status, " ", a.json["error"]), "%s %v", origin, r)
			require.Equal(t, "origin_denied", a.header.Get("X-Error-Code"))
			require.Equal(t, "Origin", a.header.Get("Vary"))
			require.Empty(t, a.header.Values("Access-Control-Allow-Origin"))
		}
	}
	require.Equal(t, "old", h.get("f"))
	require.Equal(t, before, h.store.Revision())
	entries, err := os.ReadDir(filepath.Dir(h.dir))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, 200, h.do(request{method: "PUT", path: h.at("files/content", "path", "f"), token: once, body: "new", header: from(panel)}).status)
	require.Equal(t, "new", h.get("f"))
}

// TestOriginReadsAnswers: an allowed page reads answers and errors of every kind.
func TestOriginReadsAnswers(t *testing.T) {
	h := newPageHarness(t)
	h.put("f", "0123456789")
	once := h.mint(object{"remove_on_use": true})
	for _, r := range []request{
		{method: "GET", path: "/healthz", token: "-"},
		{method: "GET", path: "/containers"},
		{method: "GET", path: "/containers", token: "-"},
		{method: "GET", path: "/containers", token: "wrong"},
		{method: "GET", path: "/containers", accept: "-"},
		{method: "GET", path: "/containers/none"},
		{method: "POST", path: "/healthz"},
		{method: "GET", path: "/nowhere"},
		{method: "POST", path: "/containers", body: "{"},
		{method: "POST", path: "/containers", body: strings.Repeat("x", 2<<20)},
		{method: "PUT", path: h.at("files/content", "path", "../f"), body: "x"},
		{method: "GET", path: h.at("files/content", "path", "f")},
		{method: "GET", path: h.at("files/content", "path", "f"), token: once},
		{method: "GET", path: h.at("files/content", "path", "f"), token: once},
		{method: "GET", path: h.at("files/content", "path", "f"), header: http.Header{"Range": {"bytes=2-3"}}},
		{method: "GET", path: "/ws"},
	} {
		if r.header == nil {
			r.header = http.Header{}
		}
		r.header.Set("Origin", panel)
		a := h.do(r)
		require.Equal(t, []string{panel}, a.header.Values("Access-Control-Allow-Origin"), "%d %v", a.status, r)
		require.Equal(t, []string{"Origin"}, a.header.Values("Vary"), "%v", r)
		require.Empty(t, a.header.Values("Access-Control-Allow-Credentials"))
		for _, name := range []string{"X-Request-Id", "X-Error-Code", "ETag", "Content-Disposition", "Content-Range", "Retry-After"} {
			require.Contains(t, strings.Split(a.header.Get("Access-Control-Expose-Headers"), ", "), name)
		}
	}
	a := h.do(request{method: "GET", path: "/containers"})
	require.Equal(t, 200, a.status)
	require.Empty(t, a.header.Values("Access-Control-Allow-Origin"))
	require.Equal(t, "Origin", a.header.Get("Vary"), "a cache must not give this answer to a page")
}

// TestOwnOrigin: berth's own pages need no entry in allowed_origins, behind a proxy that
// ends TLS as well.
func TestOwnOrigin(t *testing.T) {
	h := newHarness(t)
	own := strings.TrimPrefix(h.base, "http://")
	try := func(origin, host string, more ...string) int {
		c := h.dial()
		text := "GET /containers HTTP/1.1\nHost: " + host + "\nOrigin: " + origin + "\nAuthorization: Bearer " + adminToken + "\nAccept: application/vnd.berthv1+json\n"
		for i := 0; i < len(more); i += 2 {
			text += more[i] + ": " + more[i+1] + "\n"
		}
		c.send(text + "\n")
		status, _ := c.answer()
		return status
	}
	for _, p := range []struct {
		origin, host string
		status       int
	}{
		{"http://" + own, own, 200}, {"https://node.example", "node.example", 200}, {"https://Node.Example", "node.example", 200},
		{"https://node.example", "node.example:443", 200}, {"http://node.example", "node.example:80", 200}, {"https://node.example:8443", "node.example:8443", 200},
		{"https://[2001:db8::1]:8443", "[2001:db8::1]:8443", 200},
		{"https://node.example", "node.example:8443", 403}, {"https://node.example:8443", "node.example", 403}, {"https://node.example", "node.example:80", 403},
		{"https://node.example.evil.example", "node.example", 403}, {"https://evil.example", "node.example", 403}, {"https://:443", ":443", 403}, {"ws://node.example", "node.example", 403},
	} {
		require.Equal(t, p.status, try(p.origin, p.host), "%v", p)
	}
	const forwarded = "X-Forwarded-Host"
	require.Equal(t, 403, try("https://node.example", "berth:8070", forwarded, "node.example", "X-Forwarded-Proto", "https"), "anybody can send it")
	h.settings.change(func(c *v1.Config) { c.Server.TrustedProxies = []string{"127.0.0.0/8"} })
	require.Equal(t, 200, try("https://node.example", "berth:8070", forwarded, "node.example", "X-Forwarded-Proto", "https"))
	require.Equal(t, 200, try("https://node.example", "berth:8070", forwarded, "node.example:443, inner"), "of several proxies")
	require.Equal(t, 403, try("https://evil.example", "berth:8070", forwarded, "node.example"))
	require.Equal(t, 403, try("https://evil.example", "berth:8070"))
	h.settings.change(func(c *v1.Config) { c.Server.TrustedProxies = []string{"10.0.0.0/8"} })
	require.Equal(t, 403, try("https://node.example", "berth:8070", forwarded, "node.example"))
}
