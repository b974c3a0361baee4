package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStartsOfLimitedTokens sends starts by HTTP and by a socket with a token that is
// limited to a container, until both are refused.
func TestStartsOfLimitedTokens(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	token := h.mint(object{"containers": []string{"mc"}})
	power := func(token, verb string) answer {
		return h.do(request{method: "POST", path: "/containers/mc/" + verb, token: token})
	}
	c, _, err := h.dialSocket("/ws/mc?tail=0", http.Header{"Authorization": {"Bearer " + token}})
	require.NoError(t, err)
	c.next()
	for range 9 {
		require.Equal(t, 200, power(token, "start").status)
		require.Equal(t, 200, power(token, "restart").status)
	}
	c.send("power", "start")
	c.send("power", "restart")
	c.send("power", "start")
	require.Contains(t, c.next()["data"], "Container was started too often")

	for _, r := range []request{
		{method: "POST", path: "/containers/mc/start"}, {method: "POST", path: "/containers/mc/restart"},
	} {
		r.token = token
		a := h.do(r)
		require.Equal(t, []any{http.StatusTooManyRequests, "too_many_starts", "30"},
			[]any{a.status, a.header.Get("X-Error-Code"), a.header.Get("Retry-After")}, r.path)
	}
	require.Equal(t, 200, power(token, "kill").status, "it starts nothing")
	require.Equal(t, 200, power(token, "stop").status)
	require.Equal(t, 200, power("", "start").status, "the configured token")
}
