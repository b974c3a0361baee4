package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// TestNode: the sums leave out what is being deleted, and a token of a tenant learns nothing.
func TestNode(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	for id, limits := range map[string]object{"a": {"memory": 64 << 20, "cpu": 0.5, "disk": 1 << 30}, "b": {"memory": 32 << 20, "cpu": 2}, "c": {"memory": 1 << 40}} {
		h.must("PUT", "/containers/"+id, object{"image": "i", "volume_id": volume, "limits": limits})
	}
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Containers.SetStatus(tx, "a", func(s *v1.ContainerStatus) { s.Phase, s.ObservedInstall, s.Machine = v1.Running, 1, "n2" })
	}))
	h.must("DELETE", "/containers/c", nil)
	got := h.must("GET", "/node", nil).json
	require.Equal(t, "host-1", got["node"])
	require.Equal(t, object{"memory": float64(96 << 20), "cpu": 2.5, "disk": float64(1 << 30)}, got["allocated"])
	states := got["containers"].(object)
	require.Len(t, states, len(v1.Phases()))
	require.Equal(t, "1 1 0", fmt.Sprint(states["running"], states["installing"], states["ready"]), "%v", states)
	require.Equal(t, object{}, got["disk"].(object)["claims"])
	machines := got["engine"].(object)["machines"].([]any)
	require.Equal(t, "0 1", fmt.Sprint(machines[0].(object)["containers"], machines[1].(object)["containers"]))
	require.Equal(t, "n2", h.must("GET", "/containers/a", nil).json["machine"])
	require.Nil(t, h.must("GET", "/containers/b", nil).json["machine"])
	require.Equal(t, true, got["features"].(object)["ui"])

	for status, token := range map[int]string{200: h.mint(object{"scopes": []string{"read"}}), 403: h.mint(object{"scopes": []string{"read"}, "containers": []string{"a"}})} {
		require.Equal(t, status, h.do(request{method: "GET", path: "/node", token: token}).status)
	}
	require.Equal(t, 403, h.do(request{method: "GET", path: "/node", token: h.mint(object{"scopes": []string{"files"}})}).status)
}

// TestProfiles: profiles are for administrators, off by default, bounded in time, and
// recorded one at a time.
func TestProfiles(t *testing.T) {
	h := newHarness(t)
	profile := func(path, token string) answer {
		return h.do(request{method: "GET", path: path, token: token, accept: "-"})
	}
	require.Equal(t, 404, profile("/debug/pprof/heap", "").status)
	h.settings.change(func(c *v1.Config) { c.Debug.Pprof = true })
	for path, want := range map[string]string{"/debug/pprof": "<html>", "/debug/pprof/": "<html>", "/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/pprof/cmdline": "server.test"} {
		a := profile(path, "")
		require.Equal(t, 200, a.status, path)
		require.Contains(t, a.raw, want, path)
	}
	require.True(t, strings.HasPrefix(profile("/debug/pprof/heap", "").raw, "\x1f\x8b"), "for go tool pprof")
	require.Equal(t, 404, profile("/debug/pprof/none", "").status)
	for _, seconds := range []string{"0", "-1", "61", "x", "1e3"} {
		require.Equal(t, 400, profile("/debug/pprof/profile?seconds="+seconds, "").status, seconds)
	}
	for _, scope := range []string{"read", "files", "power", "console", "network"} {
		require.Equal(t, 403, profile("/debug/pprof/heap", h.mint(object{"scopes": []string{scope}})).status, scope)
	}
	h.container("mc", h.volume())
	require.Equal(t, 403, profile("/debug/pprof/heap", h.mint(object{"containers": []string{"mc"}})).status)
	require.Equal(t, 200, profile("/debug/pprof/heap?token="+adminToken, "-").status, "go tool pprof sends no header")
	require.Equal(t, 401, profile("/debug/pprof/heap", "-").status)

	recorded := make(chan int, 1)
	go func() {
		status := http.StatusTooManyRequests // while the other request below is answered
		for status == http.StatusTooManyRequests {
			status = profile("/debug/pprof/profile?seconds=2", "").status
		}
		recorded <- status
	}()
	require.Eventually(t, func() bool { return profile("/debug/pprof/heap", "").status == http.StatusTooManyRequests }, time.Minute, time.Millisecond)
	require.Equal(t, 200, <-recorded)
}
