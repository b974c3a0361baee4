package server

import (
	"net/http"
	"slices"
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
	require.Len(t, a.json, 3)
	require.Regexp(t, `^berth_[0-9a-f]{32}$`, a.json["token"])
	expires, err := time.Parse("2006-01-02T15:04:05Z", a.json["expires_at"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(2*time.Hour), expires, time.Minute)
	token := a.json["token"].(string)
	require.Equal(t, 200, h.do(request{method: "GET", path: "/containers", token: token}).status)
	require.Equal(t, 401, h.do(request{method: "GET", path: "/containers?token=" + token, token: "-"}).status, "not in a URL")

	list := h.must("GET", "/auth/tokens", nil)
	require.NotContains(t, list.raw, strings.TrimPrefix(token, "berth_"))
	entry := list.json["tokens"].([]any)[0].(map[string]any)
	require.Equal(t, a.json["id"], entry["id"])
	require.Len(t, entry["scopes"], len(v1.Scopes()))
	require.Equal(t, a.json["expires_at"], entry["expires_at"])
	h.must("DELETE", "/auth/tokens/"+entry["id"].(string), nil)
	require.Equal(t, 401, h.do(request{method: "GET", path: "/containers", token: token}).status)
	h.refuse(404, "Token not found", "DELETE", "/auth/tokens/none", nil)
	for _, ttl := range []any{"", "0s", "-1h", "1y", "31d", "soon"} {
		require.Equal(t, 400, h.call("POST", "/auth/tokens", object{"ttl": ttl}).status, ttl)
	}
	h.refuse(400, "ttl: must be a string; remove_on_use: must be true or false", "POST", "/auth/tokens", object{"ttl": 60, "remove_on_use": "yes"})
	h.refuse(400, "scopes[1]: must be one of read, power, console, files, network, admin, arrive", "POST", "/auth/tokens", object{"scopes": []string{"read", "root"}})
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

func TestSingleUseIsSpent(t *testing.T) {
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

func TestSingleUseTokenMintsSingleUse(t *testing.T) {
	h := newHarness(t)
	first := h.mint(object{"remove_on_use": true})
	for _, body := range []string{"{}", `{"remove_on_use":false}`} {
		a := h.do(request{method: "POST", path: "/auth/tokens", token: first, body: body})
		require.Equal(t, 200, a.status)
		require.Equal(t, 401, h.do(request{method: "GET", path: "/containers", token: first}).status)
		first = a.json["token"].(string)
	}
	require.Equal(t, 200, h.do(request{method: "GET", path: "/containers", token: first}).status)
	require.Equal(t, 401, h.do(request{method: "GET", path: "/containers", token: first}).status)
}

func TestTokenSSHKeys(t *testing.T) {
	const ed25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1Jq3kV0b9Y2Hq0kq0yVQ9n1N1jT8w3m4l5Z6c7d8e9"
	const weak = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7oLdz6R0b8y6p2m1p9c5m9h8Jc9g2l1n5Q6e2h5pQKqj0Yk1m3n1o8v0t9w4e2y6u8i0o2p4a6s8d0f2g4h6j8k0l2z4x6c8v0b2n4m6q8w0e2r4t6y8u0i2o4p6a8s0d2f4g6h8j0k2l4z6x8c0v2b4n6m8Q=="
	h := newHarness(t)
	h.must("POST", "/auth/tokens", object{"ssh_keys": []string{ed25519 + " alice@example", ed25519}})
	list := h.must("GET", "/auth/tokens", nil).json["tokens"].([]any)
	keys := list[0].(map[string]any)["ssh_keys"].([]any)
	require.Len(t, keys, 1, "the same key twice")
	require.Regexp(t, "^SHA256:", keys[0])
	h.must("POST", "/auth/tokens", object{"ssh_keys": nil})
	for text, lines := range map[string][]string{
		"ssh_keys[1]: must be one line of an authorized_keys file, such as ssh-ed25519 AAAA…":   {ed25519, "ssh-ed25519 AAAA"},
		"ssh_keys[0]: must be one line of an authorized_keys file, such as ssh-ed25519 AAAA… ":  {ed25519 + "\n" + ed25519},
		"ssh_keys[0]: must be one line of an authorized_keys file, such as ssh-ed25519 AAAA…  ": {"# comment"},
		"ssh_keys[0]: must have no options before the key":                                      {`command="id" ` + ed25519},
		"ssh_keys: must have at most 16 keys":                                                   slices.Repeat([]string{ed25519}, 17),
	} {
		h.refuse(400, strings.TrimSpace(text), "POST", "/auth/tokens", object{"ssh_keys": lines})
	}
	require.Equal(t, 400, h.call("POST", "/auth/tokens", object{"ssh_keys": []string{weak}}).status)
	require.Equal(t, 400, h.call("POST", "/auth/tokens", object{"ssh_keys": "text"}).status)
}
