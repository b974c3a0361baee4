package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// TestRoutesNeedToken requests every route without a valid token: each answers 401,
// and the store does not change.
func TestRoutesNeedToken(t *testing.T) {
	h := newHarnessWith(t, func(d *Deps) { d.WrongTokens = limit.NewRate(limit.Pace{Every: time.Second, Burst: 1000, Keys: 1}) })
	volume := h.volume()
	h.ports(1000)
	h.container("mc", volume, 1000)
	replace := strings.NewReplacer(":volume", volume, ":id", "mc", ":ip", "127.0.0.1", ":port", "1000", ":token", "x")
	open := map[string]bool{"/api/v1/public/ping": true, "/healthz": true, "/readyz": true, "/openapi.yaml": true, "/openapi-3.0.yaml": true,
		"/ui": true, "/ui/:version/:file": true, "/ui/:version/:folder/:file": true}
	ofToken := map[string]bool{"/auth/self": true, "/auth/tickets": true} // about the token of the request, whatever its scopes
	before := h.store.Revision()
	walked := 0
	for _, r := range h.server.table {
		if open[r.path] {
			require.True(t, r.is(public))
			continue
		}
		require.False(t, r.is(public), r.path)
		require.Equal(t, ofToken[r.path], r.scope == "", r.path)
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
	log := &lines{}
	h := newHarnessWith(t, func(d *Deps) { d.Log = slog.New(slog.NewTextHandler(log, nil)) })
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
			require.Equal(t, "Application/vnd.berthv1+json", a.header.Get("X-Expected-Accept"))
		}
	}
	require.Contains(t, log.String(), "expected=Application/vnd.berthv1+json accept=")
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

func TestAllowOfSocket(t *testing.T) {
	h := newHarness(t)
	for _, path := range []string{"/ws", "/ws/mc"} {
		a := h.do(request{method: "POST", path: path})
		require.Equal(t, "405 GET", fmt.Sprint(a.status, " ", a.header.Get("Allow")), path)
	}
}

// TestHeadOfSocket: HEAD of a WebSocket is 405 with a valid token, and 401 without.
func TestHeadOfSocket(t *testing.T) {
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

func TestPathIsDecodedOnce(t *testing.T) {
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

func TestAuthorizationOff(t *testing.T) {
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

// TestScopes walks every route with a token of each single scope.
func TestScopes(t *testing.T) {
	h := newHarness(t)
	replace := strings.NewReplacer(":volume", "ffffffff", ":id", "none", ":ip", "127.0.0.1", ":port", "1", ":token", "x")
	for _, scope := range v1.Scopes() {
		token := h.mint(object{"scopes": []v1.Scope{scope}})
		for _, r := range h.server.table {
			if r.is(public) || r.path == "/remote/config/reload" {
				continue
			}
			a := h.do(request{method: r.method, path: replace.Replace(r.path), token: token, body: "{}"})
			allowed := r.scope == "" || scope == v1.ScopeAdmin || scope == r.scope || r.is(orRead) && scope == v1.ScopeRead
			require.Equal(t, !allowed, a.status == 403 && a.json["error"] == "Token scope does not allow this operation", "%s %s %s", scope, r.method, r.path)
		}
	}
	for path, scope := range map[string]v1.Scope{
		"GET /containers": "read", "POST /containers": "admin", "POST /containers/:id/start": "power", "POST /containers/:id/command": "console",
		"POST /containers/:id/rebind-network": "network", "POST /containers/:id/reinstall": "admin", "PUT /containers/:id": "admin",
		"DELETE /containers/:id": "admin", "GET /auth/tokens": "admin", "GET /remote/config": "admin", "POST /network/ports": "network",
		"GET /network/ports/random": "read", "GET /ws/:id": "read", "POST /volumes": "admin", "DELETE /volumes/:volume": "admin",
	} {
		found := false
		for _, r := range h.server.table {
			if r.method+" "+r.path == path {
				found = true
				require.Equal(t, scope, r.scope, path)
			}
		}
		require.True(t, found, path)
	}
}

func TestRestrictedToken(t *testing.T) {
	h := newHarness(t)
	mine, other := h.volume(), h.volume()
	h.ports(1000, 1001)
	h.container("mine", mine, 1000)
	h.container("other", other, 1001)
	h.phase("mine", v1.Ready)
	h.phase("other", v1.Ready)
	token := h.mint(object{"containers": []string{"mine"}})
	do := func(method, path, body string) answer {
		return h.do(request{method: method, path: path, token: token, body: body})
	}
	require.Equal(t, 200, do("GET", "/containers/mine", "").status)
	require.Equal(t, 200, do("POST", "/containers/mine/start", "").status)
	require.Equal(t, 200, do("GET", "/volumes/"+mine, "").status)
	for _, path := range []string{"/containers/other", "/volumes/" + other, "/containers/other/logs"} {
		require.Equal(t, 404, do("GET", path, "").status, path)
	}
	require.Equal(t, 404, do("POST", "/containers/other/kill", "").status)
	require.Len(t, do("GET", "/containers", "").json["containers"], 1)
	require.Len(t, do("GET", "/volumes", "").json["volumes"], 1)
	require.Len(t, do("GET", "/events", "").json["events"], 1)
	require.Equal(t, "mine", do("GET", "/network/ports/127.0.0.1/1000", "").json["container"])
	require.Nil(t, do("GET", "/network/ports/127.0.0.1/1001", "").json["container"])
	for _, path := range []string{"POST /volumes", "POST /network/ports", "GET /remote/config", "GET /metrics", "GET /auth/tokens", "GET /ws"} {
		method, path, _ := strings.Cut(path, " ")
		require.Equal(t, 403, do(method, path, "{}").status, path)
	}
	for _, r := range [][2]string{{"POST /containers", `{"internal_id":"third","image":"i","volume_id":"` + mine + `"}`},
		{"PUT /containers/mine", `{"image":"i","volume_id":"` + mine + `"}`}, {"DELETE /containers/mine", ""}, {"POST /containers/mine/reinstall", "{}"},
		{"POST /containers/mine/rebind-network", `{"ports":[]}`}, {"DELETE /volumes/" + mine, ""}, {"POST /auth/tokens", `{"containers":["mine"]}`}} {
		method, path, _ := strings.Cut(r[0], " ")
		require.Equal(t, 403, do(method, path, r[1]).status, path)
	}
	h.refuse(409, "Port is already bound by container other", "POST", "/containers/mine/rebind-network", json.RawMessage(`{"ports":[{"ip":"127.0.0.1","port":1001,"protocol":"tcp"}]}`))
	h.container("also", mine)
	require.Equal(t, []any{"mine"}, do("GET", "/volumes/"+mine, "").json["used_by"])
	require.Equal(t, []any{"mine"}, do("GET", "/volumes", "").json["volumes"].([]any)[0].(map[string]any)["used_by"])
	require.Equal(t, []any{"also", "mine"}, h.must("GET", "/volumes/"+mine, nil).json["used_by"])
	h.refuse(409, "Volume is in use by container also", "DELETE", "/volumes/"+mine, nil)
}

// TestTenantsAreNoAdministrators requires that a token limited to containers can neither change
// a spec nor act for others.
func TestTenantsAreNoAdministrators(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	for _, scope := range []string{"admin", "network"} {
		h.refuse(400, "scopes[1]: must not be "+scope+" with containers: a token that is limited to containers may hold read, power, console and files",
			"POST", "/auth/tokens", object{"containers": []string{"mc"}, "scopes": []string{"read", scope}})
	}
	h.must("POST", "/auth/tokens", object{"containers": []string{"mc"}, "scopes": []string{"read", "console", "power", "files"}})
	for _, name := range []string{"administrator", "Administrator ", " controller"} {
		require.Equal(t, 400, h.call("POST", "/auth/tokens", object{"name": name}).status, name)
	}
	token := h.mint(object{"containers": []string{"mc"}})
	a := h.do(request{method: "GET", path: "/auth/self", token: token})
	require.Equal(t, []any{"read", "power", "console", "files"}, a.json["scopes"])
	a = h.do(request{method: "GET", path: "/containers/mc", token: token, header: http.Header{"X-Berth-Actor": {"alice"}}})
	require.Equal(t, "403 X-Berth-Actor needs a token with the scope admin", statusAndError(a))
}

// tenantOf returns the tenant of tokens that are limited to a container: a later one of the same id
// has another.
func (h *harness) tenantOf(id string) string {
	h.t.Helper()
	o, err := store.Containers.Get(h.store.Read(), id)
	require.NoError(h.t, err)
	return "container " + o.Meta.UID
}

// TestWaitingRequests: a request that waited for its turn does nothing if its token was revoked
// meanwhile, or if another container has the id.
func TestWaitingRequests(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("mc", volume)
	h.phase("mc", v1.Ready)
	pace := h.server.handlers.files.sessions.access.auditor.pace
	wait := func(tenant string) {
		pace.Count(tenant, limit.Changes().Burst)
		pace.Count(tenant, 300)
	}
	send := func(r request) <-chan answer {
		answered := make(chan answer, 1)
		go func() { answered <- h.do(r) }()
		select {
		case a := <-answered:
			t.Errorf("it does not wait: %v", a.status)
		case <-time.After(200 * time.Millisecond):
		}
		return answered
	}
	start := request{method: "POST", path: "/containers/mc/start"}
	minted := h.must("POST", "/auth/tokens", object{"containers": []string{"mc"}, "scopes": []string{"read", "power"}}).json
	start.token = minted["token"].(string)
	wait(h.tenantOf("mc"))
	answered := send(start)
	h.must("DELETE", "/auth/tokens/"+minted["id"].(string), nil)
	require.Equal(t, 401, (<-answered).status)
	require.Equal(t, "stopped", h.must("GET", "/containers/mc", nil).json["power"])

	minted = h.must("POST", "/auth/tokens", object{}).json
	start.token = minted["token"].(string)
	wait("token " + minted["id"].(string))
	answered = send(start)
	h.must("DELETE", "/containers/mc", nil)
	h.purge("mc")
	h.container("mc", volume)
	require.Equal(t, 404, (<-answered).status)
	require.Equal(t, "stopped", h.must("GET", "/containers/mc", nil).json["power"])
}
