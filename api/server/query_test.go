package server

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnknownParameter: every route but the probes, the metrics and the page refuses one,
// before it reads the body or upgrades to a WebSocket.
func TestUnknownParameter(t *testing.T) {
	h := newHarness(t)
	for _, r := range h.server.table {
		at := strings.NewReplacer(":ip", "::1", ":port", "80", ":", "").Replace(r.path)
		a := h.do(request{method: r.method, path: at + "?dryrun=true", body: "{"})
		if r.query == anyQuery {
			require.NotEqual(t, 400, a.status, r.path)
			continue
		}
		known := cmp.Or(strings.Join(r.parameters(), ", "), "none")
		require.Equal(t, 400, a.status, "%s %s", r.method, r.path)
		require.Equal(t, "invalid_request", a.header.Get("X-Error-Code"), r.path)
		require.Equal(t, "dryrun: unknown parameter; known: "+known, a.json["error"], "%s %s", r.method, r.path)
	}
}

func TestRefusedQueries(t *testing.T) {
	h := newHarness(t)
	long := strings.Repeat("x", 65)
	for path, text := range map[string]string{
		"/containers?lable=a=b&x":                   "lable: unknown parameter; x: unknown parameter; known: label, stats, limit, continue",
		"/containers?stats=false&stats=true":        "stats: is set twice",
		"/containers?Stats=true":                    "Stats: unknown parameter; known: label, stats, limit, continue",
		"/containers?%64ry%5Frun=1":                 "dry_run: unknown parameter; known: label, stats, limit, continue",
		"/containers?=1&token=x":                    `"": unknown parameter; token: unknown parameter; known: label, stats, limit, continue`,
		"/node?" + long:                             long[:64] + "...: unknown parameter; known: none",
		"/containers/mc/logs/content?tail=1&token=": "tail: unknown parameter; known: token",
	} {
		h.refuse(400, text, "GET", path, nil)
	}
	h.must("GET", "/containers?&label=a&label=b=c&", nil)
	require.Equal(t, 401, h.do(request{method: "GET", path: "/node?x", token: "-"}).status)
	require.Equal(t, 403, h.do(request{method: "GET", path: "/node?x", accept: "-"}).status)
	require.Equal(t, 403, h.do(request{method: "GET", path: "/audit?x", token: h.mint(object{"scopes": []string{"read"}})}).status)
	require.Equal(t, 404, h.do(request{method: "GET", path: "/nodes?x"}).status)
	require.Equal(t, 405, h.do(request{method: "PUT", path: "/node?x"}).status)
}

// TestRefusedQueryChangesNothing: not the container, and not the token for one request.
func TestRefusedQueryChangesNothing(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("mc", volume)
	once := h.mint(object{"remove_on_use": true})
	body := `{"image":"other:1","volume_id":"` + volume + `"}`
	for range 2 {
		a := h.do(request{method: "PUT", path: "/containers/mc?dryrun=true", token: once, body: body})
		require.Equal(t, "dryrun: unknown parameter; known: dry_run, apply", a.json["error"])
		a = h.do(request{method: "DELETE", path: "/containers/mc?volumes=true", token: once})
		require.Equal(t, "volumes: unknown parameter; known: volume", a.json["error"])
	}
	require.Equal(t, "busybox:1", h.must("GET", "/containers/mc", nil).json["image"])
	require.Equal(t, http.StatusOK, h.do(request{method: "GET", path: "/containers/mc", token: once}).status)
}
