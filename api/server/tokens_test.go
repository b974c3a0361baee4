package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func (h *harness) mint(body object) string {
	return h.must("POST", "/auth/tokens", body).json["token"].(string)
}

func TestMintToken(t *testing.T) {
	h := newHarness(t)
	a := h.must("POST", "/auth/tokens", object{"ttl": "2h", "remove_on_use": false})
	require.Equal(t, 200, a.status)
	require.Len(t, a.json, 2)
	require.Regexp(t, `^berth_[0-9a-f]{32}$`, a.json["token"])
	expires, err := time.Parse("2006-01-02T15:04:05Z", a.json["expires_at"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(2*time.Hour), expires, 5*time.Second)
	require.Equal(t, "2026-01-02T03:04:06Z", iso(time.Date(2026, 1, 2, 3, 4, 5, 1, time.UTC)), "it ends no later than it is told to")
	token := a.json["token"].(string)
	require.Equal(t, 200, h.do(request{method: "GET", path: "/containers", token: token}).status)
	require.Equal(t, 401, h.do(request{method: "GET", path: "/containers?token=" + token, token: "-"}).status, "not in a URL")

	list := h.must("GET", "/auth/tokens", nil)
	require.NotContains(t, list.raw, strings.TrimPrefix(token, "berth_"))
	entry := list.json["tokens"].([]any)[0].(map[string]any)
	require.Len(t, entry["scopes"], 6)
	require.Equal(t, a.json["expires_at"], entry["expires_at"])
	h.must("DELETE", "/auth/tokens/"+entry["id"].(string), nil)
	require.Equal(t, 401, h.do(request{method: "GET", path: "/containers", token: token}).status)
	h.refuse(404, "Token not found", "DELETE", "/auth/tokens/none", nil)
	for _, ttl := range []any{"", "0s", "-1h", "1y", "31d", "soon"} {
		require.Equal(t, 400, h.call("POST", "/auth/tokens", object{"ttl": ttl}).status, ttl)
	}
	h.refuse(400, "ttl: must be a string; remove_on_use: must be true or false", "POST", "/auth/tokens", object{"ttl": 60, "remove_on_use": "yes"})
	h.refuse(400, "scopes[1]: must be one of read, power, console, files, network, admin", "POST", "/auth/tokens", object{"scopes": []string{"read", "root"}})
}

func TestSingleUse(t *testing.T) {
	h := newHarness(t)
	h.client.Transport = &http.Transport{MaxIdleConnsPerHost: 50}
	h.container("mc", h.volume())
	for range 5 {
		token := h.mint(object{"remove_on_use": true})
		var won, lost atomic.Int32
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				switch a := h.do(request{method: "POST", path: "/containers/mc/start", token: token}); a.status {
				case 200:
					won.Add(1)
				case 401:
					lost.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, won.Load())
		require.EqualValues(t, 49, lost.Load())
	}
}

func TestWhatSpendsASingleUse(t *testing.T) {
	h := newHarness(t)
	for name, c := range map[string]struct {
		r     request
		spent bool
	}{
		"vendor":     {request{method: "GET", path: "/containers", accept: "-"}, false},
		"route":      {request{method: "GET", path: "/nowhere"}, false},
		"method":     {request{method: "PATCH", path: "/containers"}, false},
		"scope":      {request{method: "POST", path: "/volumes"}, false},
		"success":    {request{method: "GET", path: "/containers"}, true},
		"not found":  {request{method: "GET", path: "/containers/none"}, true},
		"bad body":   {request{method: "POST", path: "/network/ports", body: "["}, true},
		"media type": {request{method: "POST", path: "/network/ports", header: http.Header{"Content-Encoding": {"gzip"}}}, true},
	} {
		c.r.token = h.mint(object{"remove_on_use": true, "scopes": []string{"read", "network"}})
		require.NotEqual(t, 401, h.do(c.r).status, name)
		a := h.do(request{method: "GET", path: "/containers", token: c.r.token})
		require.Equal(t, c.spent, a.status == 401, name)
	}
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
			allowed := scope == v1.ScopeAdmin || scope == r.scope || r.is(orRead) && scope == v1.ScopeRead
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

func TestATokenOfSomeContainers(t *testing.T) {
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
	body := `{"internal_id":"%","image":"i","volume_id":"` + mine + `"}`
	require.Equal(t, "Container not found", do("POST", "/containers", strings.Replace(body, "%", "third", 1)).json["error"])
	require.Equal(t, "Volume not found", do("PUT", "/containers/mine", `{"image":"i","volume_id":"`+other+`"}`).json["error"])
	require.Equal(t, 404, do("POST", "/auth/tokens", `{"containers":["other"]}`).status)
	taken := `{"ports":[{"ip":"127.0.0.1","port":1001,"protocol":"tcp"}]}`
	a := do("POST", "/containers/mine/rebind-network", taken)
	require.Equal(t, []any{409, "port_bound", "Port is already bound by another container"},
		[]any{a.status, a.header.Get("X-Error-Code"), a.json["error"]}, "no name of what it may not see")
	h.refuse(409, "Port is already bound by container other", "POST", "/containers/mine/rebind-network", json.RawMessage(taken))
	h.container("also", mine)
	require.Equal(t, []any{"mine"}, do("GET", "/volumes/"+mine, "").json["used_by"])
	require.Equal(t, []any{"mine"}, do("GET", "/volumes", "").json["volumes"].([]any)[0].(map[string]any)["used_by"])
	require.Equal(t, []any{"also", "mine"}, h.must("GET", "/volumes/"+mine, nil).json["used_by"])
	require.Equal(t, "Volume is in use by another container", do("DELETE", "/volumes/"+mine, "").json["error"])
	h.refuse(409, "Volume is in use by container also", "DELETE", "/volumes/"+mine, nil)
	require.Equal(t, 200, do("POST", "/auth/tokens", `{"containers":["mine"]}`).status)
}

func TestConfiguration(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) {
		c.Remote = v1.RemoteConfig{Enabled: true, URL: "http://panel", Token: "berth_x"}
	})
	a := h.must("GET", "/remote/config", nil)
	require.JSONEq(t, `{"version":"1.2.3","server":{"host":"0.0.0.0","port":8070},"authorization":{"enabled":true,"token":"`+adminToken+`"},
		"remote":{"enabled":true,"url":"http://panel","token":"berth_x"}}`, a.raw)
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	h.settings.reload = func() ([]string, error) { return []string{"server.port"}, nil }
	require.JSONEq(t, `{"message":"Configuration reloaded","restart_required":["server.port"]}`, h.must("POST", "/remote/config/reload", nil).raw)
	h.settings.reload = func() ([]string, error) { return nil, nil }
	require.Equal(t, []any{}, h.must("POST", "/remote/config/reload", nil).json["restart_required"])
	h.settings.reload = func() ([]string, error) { return nil, errors.New("server.port: must be between 0 and 65535") }
	h.refuse(400, "server.port: must be between 0 and 65535", "POST", "/remote/config/reload", nil)
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

func TestALimitedTokenReadsOnPastTheEventsOfOthers(t *testing.T) {
	h := newHarness(t)
	h.container("other", h.volume())
	h.container("mine", h.volume())
	for range 5 {
		h.phase("other", v1.Starting)
		h.phase("other", v1.Exit)
	}
	h.phase("mine", v1.Installing)
	answer := h.do(request{method: "GET", path: "/events?limit=1", token: h.mint(object{"containers": []string{"mine"}})})
	events := answer.json["events"].([]any)
	require.Len(t, events, 1)
	require.Equal(t, "mine", events[0].(map[string]any)["container"])
}

func TestAReplacedConfiguredTokenEndsItsSockets(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	c := h.open("/ws/mc?tail=0")
	c.next()
	h.settings.change(func(c *v1.Config) { c.Authorization.Token = "berth_ffffffffffffffffffffffffffffffff" })
	code, _ := c.closed()
	require.Equal(t, 1008, code)
}
