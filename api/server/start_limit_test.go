package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
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

// TestResizesHaveAPace: the engine carries out each, so that those of a container wait for one another.
func TestResizesHaveAPace(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.ready("other")
	p := processes{store: h.store, console: h.console, paces: newPaces()}
	unwanted := func() error { t.Error("it has waited"); return nil }
	require.NoError(t, p.resize(t.Context(), "mc", 100, 50, unwanted))
	for range 10 {
		p.paces.resizes.Count("mc", limit.Resizes().Burst)
	}
	require.Error(t, p.resize(t.Context(), "mc", 101, 50, unwanted), "its turn comes after the time of a command")
	require.NoError(t, p.resize(t.Context(), "other", 102, 50, unwanted))
	require.Equal(t, []string{"mc 100x50", "other 102x50"}, h.console.all())
}

// TestJobsOfLimitedTokens requires that backups and downloads are begun and removed at a pace,
// with all tokens of a tenant together, and that a policy is no way around it.
func TestJobsOfLimitedTokens(t *testing.T) {
	h, _ := newShelved(t)
	volume := h.volume()
	h.container("mc", volume)
	token := h.mint(object{"containers": []string{"mc"}})
	other := h.mint(object{"containers": []string{"mc"}})
	do := func(token, method, path, body string) answer {
		return h.do(request{method: method, path: path, token: token, body: body})
	}
	backups := "/volumes/" + volume + "/backups"
	for range 10 {
		id := do(token, "POST", backups, "").json["backup_id"].(string)
		require.Equal(t, 200, do(other, "DELETE", "/backups/"+id, "").status)
	}
	for _, path := range []string{backups, "/volumes/" + volume + "/pull"} {
		a := do(token, "POST", path, "{}")
		require.Equal(t, []any{http.StatusTooManyRequests, "too_many_jobs", "60"},
			[]any{a.status, a.header.Get("X-Error-Code"), a.header.Get("Retry-After")}, path)
	}
	require.Equal(t, 200, do("", "POST", backups, "").status, "the configured token")
	policy := "/volumes/" + volume + "/backup-policy"
	require.Contains(t, do(token, "PUT", policy, `{"every":"59s","keep":1}`).raw, "every: must be at least 1m0s")
	require.Equal(t, 200, do(token, "PUT", policy, `{"every":"1m","keep":1}`).status)
	require.Equal(t, 200, do("", "PUT", policy, `{"every":"10s","keep":1}`).status)
}
