package server

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

func TestContainerErrors(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.ports(1000, 1001)
	h.container("mc", volume, 1000)
	good := func(change func(object)) object {
		o := object{"internal_id": "new", "image": "busybox:1", "volume_id": volume}
		change(o)
		return o
	}
	before := h.store.Revision()
	h.refuse(400, "internal_id: is required; image: is required; volume_id: is required", "POST", "/containers", object{})
	h.refuse(404, "Volume not found", "POST", "/containers", good(func(o object) { o["volume_id"] = "12345678" }))
	h.refuse(409, "Container already exists", "POST", "/containers", good(func(o object) { o["internal_id"] = "mc" }))
	h.refuse(400, "Invalid port binding: port not in network pool", "POST", "/containers", good(func(o object) { o["ports"] = []object{binding(9)} }))
	h.refuse(409, "Port is already bound by container mc", "POST", "/containers", good(func(o object) { o["ports"] = []object{binding(1000)} }))
	h.refuse(400, "ports[1].port: must be between 1 and 65535", "POST", "/containers",
		good(func(o object) { o["ports"] = []object{binding(1001), binding(0)} }))
	h.refuse(400, "ports[1]: is the same binding twice", "POST", "/containers",
		good(func(o object) { o["ports"] = []object{binding(1001), binding(1001)} }))
	for _, verb := range []string{"start", "stop", "kill", "restart", "reinstall"} {
		h.refuse(404, "Container not found", "POST", "/containers/none/"+verb, nil)
	}
	h.refuse(404, "Container not found", "GET", "/containers/none", nil)
	h.refuse(404, "Container not found", "DELETE", "/containers/none", nil)
	h.refuse(404, "Container not found", "POST", "/containers/none/rebind-network", object{"ports": []object{}})
	h.refuse(404, "Container not found", "GET", "/containers/-", nil)
	h.refuse(400, "Cannot rebind network while container is installing", "POST", "/containers/mc/rebind-network", object{"ports": []object{binding(1001)}})
	h.refuse(400, "ports: is required", "POST", "/containers/mc/rebind-network", object{})
	require.Equal(t, before, h.store.Revision())
}

func TestVerbs(t *testing.T) {
	h := newHarness(t)
	h.ports(1000, 1001)
	h.container("mc", h.volume(), 1000)
	h.phase("mc", v1.Ready)
	for verb, message := range map[string]string{
		"start": "Container start initiated", "stop": "Container stop initiated", "kill": "Container kill initiated",
		"restart": "Container restart initiated", "reinstall": "Container reinstallation initiated",
	} {
		a := h.do(request{method: "POST", path: "/containers/mc/" + verb, body: "null"[:0]})
		require.Equal(t, 200, a.status)
		require.Equal(t, map[string]any{"message": message, "internal_id": "mc"}, a.json)
	}
	a := h.do(request{method: "POST", path: "/containers/mc/start", body: "not json", header: http.Header{"Content-Type": {"text/plain"}}})
	require.Equal(t, 200, a.status, "a body where none is expected is ignored")
	require.Equal(t, "running", h.must("GET", "/containers/mc", nil).json["power"])
	h.phase("mc", v1.Ready)
	a = h.must("POST", "/containers/mc/rebind-network", object{"ports": []object{binding(1001)}})
	require.Equal(t, map[string]any{"message": "Container network rebinding initiated", "internal_id": "mc"}, a.json)
	require.Equal(t, false, h.must("GET", "/network/ports/127.0.0.1/1000", nil).json["in_use"])
	require.Equal(t, "mc", h.must("GET", "/network/ports/127.0.0.1/1001", nil).json["container"])

	require.NotEmpty(t, h.must("DELETE", "/containers/mc", nil).json["message"])
	require.Equal(t, "deleting", h.must("GET", "/containers/mc", nil).json["state"])
	h.refuse(409, "Container is being deleted", "POST", "/containers/mc/start", nil)
	spec := object{"internal_id": "mc", "image": "b", "volume_id": h.volume()}
	for method, code := range map[string]string{"POST /containers": "container_exists", "PUT /containers/mc": "container_deleting"} {
		verb, path, _ := strings.Cut(method, " ")
		again := h.call(verb, path, spec)
		require.Equal(t, []any{409, code, "Container is being deleted: create it again once GET /containers/mc answers 404"},
			[]any{again.status, again.header.Get("X-Error-Code"), again.json["error"]})
	}
}

// TestReinstallIsVisibleAtOnce: a client that polls for ready must not see the
// state before the reinstallation.
func TestReinstallIsVisibleAtOnce(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	for before, state := range map[v1.Phase]string{v1.Ready: "installing", v1.Exit: "installing", v1.Failed: "installing", v1.Running: "running"} {
		h.phase("mc", before)
		h.must("POST", "/containers/mc/reinstall", nil)
		for _, got := range []object{h.must("GET", "/containers/mc", nil).json,
			h.must("GET", "/containers", nil).json["containers"].([]any)[0].(object)} {
			require.Equal(t, "installing", got["install_state"], before)
			require.Equal(t, state, got["state"], before)
		}
	}
}

func TestListByLabel(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	for id, labels := range map[string]object{"a": {"k": "v"}, "b": {"k": "w", "x": "y"}, "c": {}} {
		h.must("POST", "/containers", object{"internal_id": id, "image": "i", "volume_id": volume, "labels": labels})
	}
	for query, want := range map[string]int{"": 3, "?label=k": 2, "?label=k%3Dv": 1, "?label=k=w&label=x=y": 1, "?label=k=v&label=x=y": 0, "?label=z": 0} {
		require.Len(t, h.must("GET", "/containers"+query, nil).json["containers"], want, query)
	}
	h.refuse(400, "label: must be name=value or a name", "GET", "/containers?label==v", nil)
}

func TestDeleteWithVolume(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("mc", volume)
	h.refuse(409, "Volume is in use by container mc", "DELETE", "/volumes/"+volume, nil)
	h.must("DELETE", "/containers/mc?volume=true", nil)
	h.refuse(404, "Volume not found", "GET", "/volumes/"+volume, nil)
}

// TestListShowsState: a command line shows all containers after one request.
func TestListShowsState(t *testing.T) {
	h := newHarness(t)
	h.ports(1000)
	h.container("mc", h.volume(), 1000)
	at, code := time.Date(2026, 11, 22, 3, 0, 0, 0, time.FixedZone("east", 3600)), 137
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Containers.SetStatus(tx, "mc", func(st *v1.ContainerStatus) {
			st.Phase, st.Since, st.ObservedInstall = v1.Exit, at, 1
			st.ExitCode, st.OOMKilled, st.RestartCount, st.Message = &code, true, 4, "out of memory"
			st.NextRetryAt, st.StartedAt = &at, &at
		})
	}))
	utc := "2026-11-22T02:00:00Z"
	shown := object{"state": "exit", "exit_code": 137.0, "oom_killed": true, "restart_count": 4.0, "message": "out of memory",
		"state_since": utc, "next_retry_at": utc, "started_at": utc, "deadline": nil}
	for _, got := range []object{h.must("GET", "/containers/mc", nil).json,
		h.must("GET", "/containers", nil).json["containers"].([]any)[0].(object)} {
		for name, want := range shown {
			require.Equal(t, want, got[name], name)
		}
		require.Len(t, got["ports"], 1)
	}
}

// TestStateSinceRequest: a requested state shows since when it was requested, and no
// deadline of the state before.
func TestStateSinceRequest(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	since := func(deadline any) time.Time {
		got := h.must("GET", "/containers/mc", nil).json
		require.Equal(t, deadline, got["deadline"])
		at, err := time.Parse(time.RFC3339, got["state_since"].(string))
		require.NoError(t, err)
		return at
	}
	require.WithinDuration(t, time.Now(), since(nil), time.Minute, "no status yet")
	at := time.Unix(100, 0)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		err := store.Containers.SetSpec(tx, "mc", func(s *v1.ContainerSpec) error { s.StartTimeout = v1.Duration(time.Minute); return nil })
		return errors.Join(err, store.Containers.SetStatus(tx, "mc", func(st *v1.ContainerStatus) {
			st.Phase, st.ObservedInstall, st.Since, st.StartRecordedAt = v1.Starting, 1, at, at
		}))
	}))
	require.WithinDuration(t, at, since("1970-01-01T00:02:40Z"), 0)
	require.NoError(t, intent.DeleteContainer(h.store, "mc"))
	require.WithinDuration(t, time.Now(), since(nil), time.Minute)
}
