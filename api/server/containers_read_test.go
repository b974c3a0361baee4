package server

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// reference returns the list and each container, encoded from the store.
func reference(h *harness) (list string, each map[string]string) {
	h.t.Helper()
	body := struct {
		Containers []v1.ContainerSummary `json:"containers"`
	}{[]v1.ContainerSummary{}}
	each = map[string]string{}
	for _, o := range store.Containers.List(h.store.Read()) {
		body.Containers = append(body.Containers, v1.SummaryOf(o))
		each[o.Meta.ID] = encoded(h, h.server.handlers.containers.view(o))
	}
	return encoded(h, body), each
}

func encoded(h *harness, v any) string {
	h.t.Helper()
	b, err := json.Marshal(v)
	require.NoError(h.t, err)
	return string(b)
}

// TestReadsShowEveryChange reads everything after each change.
func TestReadsShowEveryChange(t *testing.T) {
	var away atomic.Int64
	h := newHarnessWith(t, func(d *Deps) {
		d.Engine = func() EngineHealth {
			return EngineHealth{Reachable: away.Load() == 0, Since: time.Unix(away.Load(), 0)}
		}
	})
	volume := h.volume()
	h.ports(1000)
	check := func(after string) {
		t.Helper()
		list, each := reference(h)
		for range 2 {
			require.Equal(t, list, h.must("GET", "/containers", nil).raw, after)
			for id, want := range each {
				a := h.must("GET", "/containers/"+id, nil)
				require.Equal(t, want, a.raw, after)
				require.Equal(t, encoded(h, a.json["resource_version"]), a.header.Get("ETag"), after)
			}
		}
	}
	check("nothing")
	h.container("b", volume, 1000)
	check("create")
	h.container("a-b", volume)
	h.container("a", volume)
	check("create more")
	h.phase("b", v1.Ready)
	check("status")
	h.must("POST", "/containers/b/start", nil)
	check("start")
	h.must("PUT", "/containers/b", object{"image": "busybox:2", "volume_id": volume, "env": object{"A": "<&>\u2028"}, "labels": object{"k": "v"}})
	check("apply")
	away.Store(5)
	check("the engine is away")
	away.Store(0)
	h.settings.change(func(c *v1.Config) { c.Storage.VolumesPath = "/elsewhere" })
	check("volumes path")
	h.must("DELETE", "/containers/a", nil)
	check("delete")
	h.purge("a")
	check("purge")
	h.refuse(404, "Container not found", "GET", "/containers/a", nil)
	h.container("a", volume)
	check("create again")
}

// TestListFilters: labels, pages, samples and limited tokens apply to the list.
func TestListFilters(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	for _, id := range []string{"a", "b", "stopped"} {
		h.container(id, volume)
	}
	require.Equal(t, `{"containers":[]}`, h.must("GET", "/containers?label=x", nil).raw)
	h.must("PUT", "/containers/b", object{"image": "busybox:1", "volume_id": volume, "labels": object{"x": "1"}})
	ids := func(a answer) (list []string) {
		for _, c := range a.json["containers"].([]any) {
			list = append(list, c.(object)["internal_id"].(string))
		}
		return list
	}
	require.Equal(t, []string{"b"}, ids(h.must("GET", "/containers?label=x=1", nil)))
	require.Empty(t, ids(h.must("GET", "/containers?label=x=2", nil)))
	limited := h.must("POST", "/auth/tokens", object{"ttl": "1h", "scopes": []string{"read"}, "containers": []string{"b", "stopped"}}).json["token"].(string)
	require.Equal(t, []string{"b", "stopped"}, ids(h.do(request{method: "GET", path: "/containers", token: limited})))
	h.purge("b")
	require.Equal(t, []string{"stopped"}, ids(h.do(request{method: "GET", path: "/containers", token: limited})))
	h.container("b", volume)
	require.Equal(t, []string{"stopped"}, ids(h.do(request{method: "GET", path: "/containers", token: limited})), "another container of that id")

	measured := h.must("GET", "/containers?stats=true&limit=2", nil)
	require.Equal(t, []string{"a", "b"}, ids(measured))
	require.NotEmpty(t, measured.json["continue"])
	measured = h.must("GET", "/containers?stats=true&limit=2&continue="+measured.json["continue"].(string), nil)
	require.Equal(t, []string{"stopped"}, ids(measured))
	require.Contains(t, measured.json["containers"].([]any)[0].(object), "stats")
	require.Nil(t, measured.json["containers"].([]any)[0].(object)["stats"])
}
