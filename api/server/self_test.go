package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSelf(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	own := h.must("GET", "/auth/self", nil)
	require.Equal(t, "administrator", own.json["id"])
	require.Nil(t, own.json["containers"])
	require.Nil(t, own.json["expires_at"])

	minted := h.must("POST", "/auth/tokens", object{"name": "alice", "scopes": []string{"console"}, "containers": []string{"mc"}})
	a := h.do(request{method: "GET", path: "/auth/self", token: minted.json["token"].(string)})
	require.Equal(t, 200, a.status)
	require.Equal(t, object{"id": minted.json["id"], "name": "alice", "scopes": []any{"console"}, "containers": []any{"mc"},
		"expires_at": minted.json["expires_at"], "remove_on_use": false}, object(a.json))
}

func TestTicket(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.ready("other")
	token := h.mint(object{"scopes": []string{"read"}, "containers": []string{"mc"}})
	ticket := func() string {
		a := h.do(request{method: "POST", path: "/auth/tickets", token: token})
		require.Equal(t, 200, a.status, a.raw)
		return a.json["token"].(string)
	}
	connect := func(path, ticket string) int {
		_, resp, err := h.dialSocket(path+"?token="+ticket, http.Header{})
		if err != nil {
			return resp.StatusCode
		}
		return 101
	}

	once := ticket()
	require.Equal(t, 101, connect("/ws/mc", once))
	require.Equal(t, 401, connect("/ws/mc", once), "for one request")
	require.Equal(t, 404, connect("/ws/other", ticket()), "with the rights of its token")
	require.Equal(t, 403, h.do(request{method: "POST", path: "/containers/mc/start", token: ticket()}).status)
	require.Equal(t, 403, h.do(request{method: "POST", path: "/auth/tickets", token: ticket()}).status, "a ticket gets no ticket")

	for range 1100 {
		ticket()
	}
	parent := h.do(request{method: "GET", path: "/auth/self", token: token}).json["id"].(string)
	last := ticket()
	h.must("DELETE", "/auth/tokens/"+parent, nil)
	require.Equal(t, 401, h.do(request{method: "GET", path: "/auth/self", token: last}).status, "it ends with its token")
}
