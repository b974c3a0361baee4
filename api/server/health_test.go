package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestPublicRoutes(t *testing.T) {
	h := newHarness(t)
	for path, want := range map[string]string{
		"/api/v1/public/ping": `{"status":"ok","message":"berth is running"}`, "/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ok"}`,
	} {
		a := h.do(request{method: "GET", path: path, token: "-", accept: "-"})
		require.Equal(t, 200, a.status)
		require.Equal(t, want, a.raw)
		require.Equal(t, "application/json", a.header.Get("Content-Type"))
		require.Equal(t, 200, h.do(request{method: "GET", path: path + "/", token: "-", accept: "-"}).status, "trailing slash")
		require.Equal(t, 401, h.do(request{method: "POST", path: path, token: "-"}).status, "only GET is exempt")
		a = h.do(request{method: "POST", path: path})
		require.Equal(t, 405, a.status)
		require.Equal(t, "GET, HEAD", a.header.Get("Allow"))
	}
}

func TestNotReady(t *testing.T) {
	h := newHarnessWith(t, func(d *Deps) { d.Ready = func() []string { return []string{"engine does not answer"} } })
	a := h.do(request{method: "GET", path: "/readyz", token: "-", accept: "-"})
	require.Equal(t, 503, a.status)
	require.Equal(t, "Not ready: engine does not answer", a.json["error"])
}

func TestMetrics(t *testing.T) {
	h := newHarness(t)
	h.do(request{method: "GET", path: "/containers/none"})
	h.do(request{method: "GET", path: "/secret-path", token: "-"})
	a := h.do(request{method: "GET", path: "/metrics", accept: "-"})
	require.Equal(t, 200, a.status)
	require.Contains(t, a.header.Get("Content-Type"), "text/plain")
	require.Contains(t, a.raw, `berth_http_request_duration_seconds_count{code="404",route="/containers/:id"} 1`)
	require.Contains(t, a.raw, `berth_http_request_duration_seconds_count{code="401",route="none"} 1`)
	require.Contains(t, a.raw, "berth_auth_failures_total 1")
	require.Contains(t, a.raw, "berth_websocket_connections 0")
	require.NotContains(t, a.raw, "secret-path")
	require.Equal(t, 401, h.do(request{method: "GET", path: "/metrics", token: "-"}).status)
	h.settings.change(func(c *v1.Config) { c.Metrics.Public = true })
	require.Equal(t, 200, h.do(request{method: "GET", path: "/metrics", token: "-", accept: "-"}).status)
}

func TestServeOpenAPI(t *testing.T) {
	h := newHarness(t)
	a := h.do(request{method: "GET", path: "/openapi.yaml", token: "-", accept: "-"})
	require.Equal(t, "application/yaml", a.header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(a.raw, "openapi: 3.1.0"))
}
