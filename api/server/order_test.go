package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/server/edge"
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

// TestEveryRouteIsGuarded walks the router: without a token nothing is
// answered, and nothing changes.
func TestEveryRouteIsGuarded(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.ports(1000)
	h.container("mc", volume, 1000)
	replace := strings.NewReplacer(":volume", volume, ":id", "mc", ":ip", "127.0.0.1", ":port", "1000", ":token", "x")
	open := map[string]bool{"/api/v1/public/ping": true, "/healthz": true, "/readyz": true, "/openapi.yaml": true}
	before := h.store.Revision()
	walked := 0
	for _, r := range h.server.table {
		if open[r.path] {
			require.True(t, r.is(public))
			continue
		}
		require.False(t, r.is(public), r.path)
		require.NotEmpty(t, r.scope, r.path)
		for _, token := range []string{"-", "berth_ffffffffffffffffffffffffffffffff", "x"} {
			a := h.do(request{method: r.method, path: replace.Replace(r.path), token: token})
			require.Equal(t, 401, a.status, r.path)
			require.Equal(t, "Missing or invalid authorization token", a.json["error"])
			require.Equal(t, "unauthorized", a.header.Get("X-Error-Code"))
		}
		a := h.do(request{method: r.method, path: replace.Replace(r.path), accept: "-"})
		if r.is(anyAccept) {
			require.NotEqual(t, edge.ErrVendor.Message, a.json["error"], r.path)
		} else {
			require.Equal(t, 403, a.status, r.path)
			require.Equal(t, "Invalid vendor header", a.json["error"])
		}
		walked++
	}
	require.Greater(t, walked, 35)
	require.Equal(t, before, h.store.Revision())
	registered := 0
	for _, r := range h.server.front.Routes() {
		if r.Method != http.MethodHead {
			registered++
		}
	}
	require.Equal(t, walked+len(open), registered, "no route beside the table")
}

func TestVendorHeader(t *testing.T) {
	h := newHarness(t)
	for accept, ok := range map[string]bool{
		"Application/vnd.berthv1+json": true, "application/VND.BERTHV1+JSON": true,
		"text/html, application/vnd.berthv1+json;q=0.5": true, "application/vnd.berthv1+json; charset=utf-8, */*": true,
		"*/*": false, "application/json": false, "application/vnd.berthv2+json": false, "application/*": false, "-": false,
		"xapplication/vnd.berthv1+json": false,
	} {
		a := h.do(request{method: "GET", path: "/containers", accept: accept})
		require.Equal(t, ok, a.status == 200, accept)
		if !ok {
			require.Equal(t, "Invalid vendor header", a.json["error"])
		}
	}
}

func TestOrderOfChecks(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.ports(1000)
	h.container("mc", volume, 1000)
	bad := `{"ports": 5}`
	for _, c := range []struct {
		name   string
		r      request
		status int
	}{
		{"token before vendor", request{method: "GET", path: "/nowhere", token: "x", accept: "-"}, 401},
		{"vendor before route", request{method: "GET", path: "/nowhere", accept: "-"}, 403},
		{"route", request{method: "GET", path: "/nowhere"}, 404},
		{"method", request{method: "PATCH", path: "/containers/none"}, 405},
		{"unknown method before token", request{method: "BREW", path: "/containers", token: "x"}, 401},
		{"unknown method before vendor", request{method: "BREW", path: "/containers", accept: "-"}, 403},
		{"unknown method, unknown route", request{method: "BREW", path: "/nowhere"}, 404},
		{"unknown method", request{method: "BREW", path: "/containers"}, 405},
		{"unknown method in lower case", request{method: "get", path: "/containers"}, 405},
		{"case", request{method: "GET", path: "/Containers"}, 404},
		{"body before resource", request{method: "POST", path: "/containers/none/rebind-network", body: bad}, 400},
		{"media type before resource", request{method: "POST", path: "/containers/none/rebind-network", body: "{}", header: http.Header{"Content-Type": {"text/plain"}}}, 415},
		{"resource before conflict", request{method: "POST", path: "/containers/none/rebind-network", body: `{"ports":[{"ip":"127.0.0.1","port":9,"protocol":"tcp"}]}`}, 404},
		{"conflict", request{method: "POST", path: "/containers/mc/rebind-network", body: `{"ports":[]}`}, 400},
	} {
		require.Equal(t, c.status, h.do(c.r).status, c.name)
	}
	for _, method := range []string{"PATCH", "TRACE", "BREW"} {
		a := h.do(request{method: method, path: "/containers/mc"})
		require.ElementsMatch(t, []string{"GET", "HEAD", "PUT", "DELETE"}, strings.Split(a.header.Get("Allow"), ", "), method)
	}
}

// TestHeadOfASocket: a WebSocket has no HEAD, and says so to valid tokens only.
func TestHeadOfASocket(t *testing.T) {
	h := newHarness(t)
	for query, want := range map[string]string{"?token=" + adminToken: "405 GET", "": "401 "} {
		for _, path := range []string{"/ws", "/ws/mc"} {
			resp, err := h.client.Head(h.base + path + query)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, want, fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Allow")), path)
		}
	}
}

func TestSegmentsAreDecodedOnce(t *testing.T) {
	h := newHarness(t)
	h.container("a.b-c", h.volume())
	require.Equal(t, 200, h.do(request{method: "GET", path: "/containers/a%2Eb-c"}).status)
	require.Equal(t, 404, h.do(request{method: "GET", path: "/containers/a%252Eb-c"}).status)
	require.Equal(t, 404, h.do(request{method: "GET", path: "/containers/a.b-c%2Flogs"}).status)
	require.Equal(t, v1.PowerOff, v1.Power(h.must("GET", "/containers/a.b-c/", nil).json["power"].(string)))
	for path, status := range map[string]int{
		"/%63ontainers": 200, "/%63ontainer%73/a%2Eb%2dc": 200, "/containers/a.b-c/%6Cogs": 200, "/%6eetwork/ports/%72andom": 404,
		"/%2563ontainers": 404, "/containers%2Fa.b-c": 404, "/%43ontainers": 404, "/containers/%": 404, "/containers/a.b-c%": 404,
		"/containers/x/%2E%2E/a.b-c": 404, "/containers/%61%25": 404,
	} {
		c := h.dial()
		c.send("GET " + path + " HTTP/1.1\n" + headers + "\n")
		got, body := c.answer()
		require.Equal(t, status, got, "%s: %s", path, body)
	}
	require.Equal(t, 401, h.do(request{method: "GET", path: "/%63ontainers", token: "-"}).status)
	c := h.dial()
	c.send("GET /%68ealthz HTTP/1.1\nHost: x\n\n")
	status, _ := c.answer()
	require.Equal(t, 200, status, "public, however it is written")
}

func TestAuthorizationCanBeOff(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.Authorization.Enabled = false })
	require.Equal(t, 200, h.do(request{method: "GET", path: "/containers", token: "-"}).status)
	require.Equal(t, 403, h.do(request{method: "GET", path: "/containers", token: "-", accept: "*/*"}).status)
}

func TestRequestID(t *testing.T) {
	h := newHarness(t)
	a := h.do(request{method: "GET", path: "/containers", header: http.Header{"X-Request-Id": {"mine-1"}}})
	require.Equal(t, "mine-1", a.header.Get("X-Request-Id"))
	a = h.do(request{method: "GET", path: "/containers", header: http.Header{"X-Request-Id": {"a b"}}})
	require.Regexp(t, `^[0-9a-f]{16}$`, a.header.Get("X-Request-Id"))
}
