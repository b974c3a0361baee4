package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// requester returns who requested the last action of a container.
func requester(h *harness, id string) v1.Actor {
	h.t.Helper()
	o, err := store.Containers.Get(h.store.Read(), id)
	require.NoError(h.t, err)
	return o.Spec.RequestedBy
}

func TestActorOfRequests(t *testing.T) {
	h := newHarness(t)
	admin := v1.Actor{TokenID: "administrator", Name: "administrator", Via: v1.ViaHTTP, Address: "127.0.0.1"}
	h.container("mc", h.volume())
	require.Equal(t, admin, requester(h, "mc"))

	minted := h.must("POST", "/auth/tokens", object{"name": "panel of Zoë", "scopes": []string{"power", "read"}}).json
	token, id := minted["token"].(string), minted["id"].(string)
	require.Equal(t, 200, h.do(request{method: "POST", path: "/containers/mc/start", token: token}).status)
	require.Equal(t, v1.Actor{TokenID: id, Name: "panel of Zoë", Via: v1.ViaHTTP, Address: "127.0.0.1"}, requester(h, "mc"))
	require.Equal(t, "panel of Zoë", h.must("GET", "/auth/tokens", nil).json["tokens"].([]any)[0].(map[string]any)["name"])

	h.settings.change(func(c *v1.Config) { c.Server.TrustedProxies = []string{"127.0.0.0/8"} })
	header := http.Header{"X-Berth-Actor": {"alice"}, "X-Forwarded-For": {"2001:db8::7"}}
	require.Equal(t, 200, h.do(request{method: "POST", path: "/containers/mc/stop", header: header}).status)
	admin.OnBehalfOf, admin.Address = "alice", "2001:db8::7"
	require.Equal(t, admin, requester(h, "mc"))

	header.Set("Authorization", "Bearer "+adminToken)
	c, _, err := h.dialSocket("/ws/mc?tail=0", header)
	require.NoError(t, err)
	c.send("power", "restart")
	admin.Via = v1.ViaWebSocket
	require.Eventually(t, func() bool { return requester(h, "mc") == admin }, time.Minute, time.Millisecond)
}

func TestActorHeader(t *testing.T) {
	h := newHarness(t)
	actor := func(token string, values ...string) answer {
		return h.do(request{method: "GET", path: "/volumes", token: token, header: http.Header{"X-Berth-Actor": values}})
	}
	require.Equal(t, 200, actor("", "").status)
	require.Equal(t, 200, actor("", strings.Repeat("é", 128)).status)
	for _, values := range [][]string{{strings.Repeat("a", 129)}, {"a\tb"}, {"\xff"}, {"a", "b"}} {
		a := actor("", values...)
		require.Equal(t, 400, a.status, "%q", values)
		require.Equal(t, "X-Berth-Actor: must be one value of at most 128 printable characters", a.json["error"])
	}
	reader := h.mint(object{"scopes": []string{"read", "power", "console", "files", "network"}})
	a := actor(reader, "alice")
	require.Equal(t, 403, a.status)
	require.Equal(t, "X-Berth-Actor needs a token with the scope admin", a.json["error"])
	require.Equal(t, 200, actor(h.mint(object{"scopes": []string{"admin"}}), "alice").status)
	require.Equal(t, 200, h.do(request{method: "GET", path: "/healthz", token: "-", header: http.Header{"X-Berth-Actor": {"alice"}}}).status)
	for _, name := range []any{strings.Repeat("é", 129), "a\nb", 5} {
		require.Equal(t, 400, h.call("POST", "/auth/tokens", object{"name": name}).status, name)
	}
}

// TestActorsOfOthersAreHidden: a token that is limited to containers receives who sent its
// own requests, and of others the name, by REST and on the socket: replayed, current and live.
func TestActorsOfOthersAreHidden(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	minted := h.must("POST", "/auth/tokens", object{"name": "tenant", "containers": []string{"mc"}}).json
	own := v1.Actor{TokenID: minted["id"].(string), Name: "tenant", Via: v1.ViaHTTP, Address: "::1"}
	admin := v1.Actor{TokenID: "administrator", Name: "administrator", Via: v1.ViaHTTP, Address: "192.0.2.1", OnBehalfOf: "alice"}
	emit := func(actor v1.Actor, phase v1.Phase) {
		require.NoError(t, h.store.Update(func(tx *store.Tx) error {
			e := tx.Emit(v1.Event{Container: "mc", Event: v1.EventState, Data: string(phase), Actor: actor})
			return store.Containers.SetStatus(tx, "mc", func(s *v1.ContainerStatus) {
				s.Phase, s.Seq, s.Since, s.Actor = phase, e.Seq, e.Time, actor
			})
		}))
	}
	emit(own, v1.Ready)
	emit(v1.Controller(), v1.Starting)
	emit(admin, v1.Running)
	full := []object{
		{"token_id": own.TokenID, "name": "tenant", "via": "http", "address": "::1"}, {"via": "controller"},
		{"token_id": "administrator", "name": "administrator", "via": "http", "address": "192.0.2.1", "on_behalf_of": "alice"},
	}
	hidden := []object{full[0], full[1], {"name": "administrator", "via": "http"}}
	for token, want := range map[string][]object{adminToken: full, minted["token"].(string): hidden} {
		list := h.do(request{method: "GET", path: "/events", token: token}).json["events"].([]any)
		require.Len(t, list, 3)
		c, _, err := h.dialSocket("/ws/mc?tail=0&since=0", http.Header{"Authorization": {"Bearer " + token}})
		require.NoError(t, err)
		for i, actor := range want {
			require.Equal(t, actor, list[i].(object)["actor"])
			require.Equal(t, actor, c.next()["actor"], "replayed")
		}
		require.Equal(t, want[2], c.next()["actor"], "current")
		c.send("request_stats", "")
		require.Equal(t, "stats", c.next()["event"])
		h.hub.Event(v1.Event{Seq: 100, Epoch: h.store.Incarnations.Epoch(), Time: time.Now(), Container: "mc", Event: v1.EventState, Data: "exit", Actor: admin})
		require.Equal(t, want[2], c.next()["actor"], "live")
	}
}

// TestTokenOfAUser: a token that acts for an end user names it and the address of its client, and so do those that it
// mints. A header with another user comes first.
func TestTokenOfAUser(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	minted := h.must("POST", "/auth/tokens", object{"name": "bridge", "on_behalf_of": "alice", "address": "2001:db8::7"}).json
	token, id := minted["token"].(string), minted["id"].(string)
	verb := "stop"
	stop := func(token string, header http.Header) v1.Actor { // or start: a request that changes nothing has no requester
		verb = map[string]string{"start": "stop", "stop": "start"}[verb]
		require.Equal(t, 200, h.do(request{method: "POST", path: "/containers/mc/" + verb, token: token, header: header}).status)
		return requester(h, "mc")
	}
	want := v1.Actor{TokenID: id, Name: "bridge", Via: v1.ViaHTTP, Address: "2001:db8::7", OnBehalfOf: "alice"}
	require.Equal(t, want, stop(token, nil))
	list := h.must("GET", "/audit?actor=alice", nil).json["entries"].([]any)
	require.Len(t, list, 1)
	require.Equal(t, "2001:db8::7", list[0].(object)["actor"].(object)["address"])
	a := h.do(request{method: "POST", path: "/auth/tokens", token: token, body: `{}`})
	child := want
	child.TokenID, child.Name = a.json["id"].(string), ""
	require.Equal(t, child, stop(a.json["token"].(string), nil))
	a = h.do(request{method: "POST", path: "/auth/tokens", token: token, body: `{"on_behalf_of": "carol"}`})
	child.TokenID, child.OnBehalfOf = a.json["id"].(string), "carol"
	require.Equal(t, child, stop(a.json["token"].(string), nil))
	want.OnBehalfOf = "bob"
	require.Equal(t, want, stop(token, http.Header{"X-Berth-Actor": {"bob"}}))
	for _, one := range h.must("GET", "/auth/tokens", nil).json["tokens"].([]any) {
		if one.(object)["id"] == id {
			require.Equal(t, []any{"alice", "2001:db8::7"}, []any{one.(object)["on_behalf_of"], one.(object)["address"]})
		}
	}
	h.refuse(400, "on_behalf_of: must be at most 128 printable characters; address: must be an IP address, such as 192.0.2.7",
		"POST", "/auth/tokens", object{"on_behalf_of": "a\nb", "address": "fe80::1%eth0"})
	h.refuse(400, "address: must be an IP address, such as 192.0.2.7", "POST", "/auth/tokens", object{"address": "example.org"})
}
