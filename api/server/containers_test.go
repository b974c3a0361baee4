package server

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

func TestCreateContainer(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.ports(1000)
	a := h.must("POST", "/containers", object{
		"internal_id": "mc", "image": "busybox:1", "volume_id": volume, "startup_command": "sh -c 'sleep 1'", "start_pattern": "Done",
		"ports": []object{binding(1000)}, "limits": object{"memory": 536870912, "cpu": 1.5}, "install_script": "echo hi",
	})
	require.Equal(t, 200, a.status)
	require.JSONEq(t, `{"message":"Container creation started","internal_id":"mc","state":"installing"}`, a.raw)
	require.Equal(t, true, h.must("GET", "/network/ports/127.0.0.1/1000", nil).json["in_use"])

	got := h.must("GET", "/containers/mc", nil)
	require.NotEmpty(t, got.header.Get("ETag"))
	require.Equal(t, `"`+got.json["resource_version"].(string)+`"`, got.header.Get("ETag"))
	state := object{
		"internal_id": "mc", "container_id": "", "volume_id": volume, "image": "busybox:1", "startup_command": "sh -c 'sleep 1'",
		"start_pattern": "Done", "install_state": "installing", "state": "installing", "power": "stopped", "generation": 1.0, "observed_generation": 0.0,
		"exit_code": nil, "oom_killed": false, "restart_count": 0.0, "next_retry_at": nil, "started_at": nil, "message": nil,
		"ports": []any{map[string]any{"ip": "127.0.0.1", "port": 1000.0, "protocol": "tcp"}}, "conditions": []any{}, "tty": true,
		"limits": map[string]any{"memory": 536870912.0, "cpu": 1.5},
		"mount":  map[string]any{"source": "/data/volumes/" + volume, "target": "/home/container"},
	}
	for field, want := range state {
		require.Equal(t, want, got.json[field], field)
		require.Contains(t, got.json, field)
	}
	require.NotContains(t, got.json, "install_script")
	require.IsType(t, 0.0, got.json["created_at"])
	require.IsType(t, 0.0, got.json["updated_at"])

	list := h.must("GET", "/containers", nil).json["containers"].([]any)
	require.Len(t, list, 1)
	summary := object{"internal_id": "mc", "container_id": "", "install_state": "installing", "image": "busybox:1"}
	for field, want := range summary {
		require.Equal(t, want, list[0].(map[string]any)[field])
	}
}

func TestContainerErrorTable(t *testing.T) {
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

func TestVerbsAndTheirAnswers(t *testing.T) {
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
	h.refuse(409, "Container already exists", "POST", "/containers", object{"internal_id": "mc", "image": "b", "volume_id": h.volume()})
}

// TestAReinstallationCountsFromItsAnswerOn: who polls for ready must not see the old one.
func TestAReinstallationCountsFromItsAnswerOn(t *testing.T) {
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

func TestImageVerdict(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.ports(1000)
	h.settings.change(func(c *v1.Config) { c.Reconcile.CreateWait = v1.Duration(10e9) })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() { // the controller: an image is there unless its name is "missing"
		defer close(ended)
		_ = store.Containers.Source(h.store)(ctx, func(id string) { _ = h.store.Update(func(tx *store.Tx) error { return judge(tx, id) }) })
	}()
	body := object{"internal_id": "mc", "image": "missing", "volume_id": volume, "ports": []object{binding(1000)}}
	h.refuse(500, "Failed to create Docker container: image not found", "POST", "/containers", body)
	h.refuse(404, "Container not found", "GET", "/containers/mc", nil)
	require.Equal(t, false, h.must("GET", "/network/ports/127.0.0.1/1000", nil).json["in_use"])
	body["image"] = "there"
	h.must("POST", "/containers", body)
	h.must("GET", "/containers/mc", nil)
}

func TestJudged(t *testing.T) {
	for status, want := range map[string]bool{"": false, v1.Unknown: false, v1.True: true, v1.False: true} {
		var o v1.Container
		o.Status.Conditions = []v1.Condition{{Type: v1.ImageAvailable, Status: status}}
		require.Equal(t, want, judged(o), status)
	}
}

func judge(tx *store.Tx, id string) error {
	o, err := store.Containers.Get(tx, id)
	switch {
	case err != nil:
		return err
	case o.Meta.Deleted:
		return store.Containers.Purge(tx, id)
	}
	return store.Containers.SetStatus(tx, id, func(s *v1.ContainerStatus) {
		c := v1.Condition{Type: v1.ImageAvailable, Status: v1.True, Reason: "Present"}
		switch {
		case v1.FindCondition(s.Conditions, v1.ImageAvailable).Status == "":
			c.Status, c.Reason = v1.Unknown, "Pulling"
		case o.Spec.Image == "missing":
			c.Status, c.Reason = v1.False, v1.ReasonImageNotFound
		}
		s.Conditions = v1.SetCondition(s.Conditions, c, tx.Now())
	})
}

func TestApply(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.ports(1000)
	body := object{"image": "busybox:1", "volume_id": volume, "ports": []object{binding(1000)}, "install_script": "true"}
	dry := h.must("PUT", "/containers/mc?dry_run=true", body)
	require.JSONEq(t, `{"changed":true,"actions":[{"action":"create","reason":"there is no such container"}]}`, dry.raw)
	h.refuse(404, "Container not found", "GET", "/containers/mc", nil)
	a := h.must("PUT", "/containers/mc", body)
	require.Equal(t, 201, a.status)
	require.NotEmpty(t, a.header.Get("ETag"))

	// What GET gave can be sent back, and changes nothing.
	h.phase("mc", v1.Ready)
	state := h.must("GET", "/containers/mc", nil)
	before := h.store.Revision()
	again := h.must("PUT", "/containers/mc", state.json)
	require.Equal(t, 200, again.status)
	require.Equal(t, state.raw, again.raw)
	require.JSONEq(t, `{"changed":false,"actions":[]}`, h.must("PUT", "/containers/mc?dry_run=true", state.json).raw)
	require.Equal(t, before, h.store.Revision())

	header := http.Header{"If-Match": {`"1"`}}
	raw := `{"image":"other:1","volume_id":"` + volume + `"}`
	refused := h.do(request{method: "PUT", path: "/containers/mc", body: raw, header: header})
	require.Equal(t, 412, refused.status)
	header = http.Header{"If-Match": {state.json["resource_version"].(string)}}
	require.Equal(t, 200, h.do(request{method: "PUT", path: "/containers/mc", body: raw, header: header}).status)
	require.Equal(t, "other:1", h.must("GET", "/containers/mc", nil).json["image"])
	require.Equal(t, []any{}, h.must("GET", "/containers/mc", nil).json["ports"])
	h.refuse(400, "internal_id: must equal the id in the URL", "PUT", "/containers/mc", object{"internal_id": "x", "image": "a", "volume_id": volume})
	h.refuse(400, "dry_run: must be true or false", "PUT", "/containers/mc?dry_run=perhaps", body)
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

func TestDeleteWithItsVolume(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("mc", volume)
	h.refuse(409, "Volume is in use by container mc", "DELETE", "/volumes/"+volume, nil)
	h.must("DELETE", "/containers/mc?volume=true", nil)
	h.refuse(404, "Volume not found", "GET", "/volumes/"+volume, nil)
}

func TestConsoleRoutes(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("mc", volume)
	h.container("stopped", volume)
	require.Equal(t, "mc", h.must("POST", "/containers/mc/command", object{"command": "say hi"}).json["internal_id"])
	require.Equal(t, []string{"mc say hi\n"}, h.console.all())
	h.refuse(409, "Container is not running", "POST", "/containers/stopped/command", object{"command": "x"})
	h.refuse(400, "command: is required", "POST", "/containers/mc/command", object{})
	require.Equal(t, 12.5, h.must("GET", "/containers/mc/stats", nil).json["cpu_usage"])
	require.NotContains(t, h.must("GET", "/containers/mc/stats", nil).json, "event")
	h.refuse(409, "Container is not running", "GET", "/containers/stopped/stats", nil)
	list := h.must("GET", "/containers?stats=true", nil).json["containers"].([]any)
	require.Equal(t, 12.5, list[0].(map[string]any)["stats"].(map[string]any)["cpu_usage"])
	require.Contains(t, list[1], "stats")
	require.Nil(t, list[1].(map[string]any)["stats"])
	h.print("mc", v1.InstallConsole, "installed")
	h.print("mc", v1.ServerConsole, "one", "two", "three")
	texts := func(path string) (list []any) {
		for _, l := range h.must("GET", path, nil).json["lines"].([]any) {
			require.NotEmpty(t, l.(map[string]any)["time"])
			list = append(list, l.(map[string]any)["data"])
		}
		return list
	}
	require.Equal(t, []any{"installed", "one", "two", "three"}, texts("/containers/mc/logs"))
	require.Equal(t, []any{"three"}, texts("/containers/mc/logs?tail=1"))
	require.Empty(t, texts("/containers/mc/logs?since=2100-01-01T00:00:00Z"))
	require.Len(t, texts("/containers/mc/logs?since=1"), 4)
	require.Equal(t, []any{"installed"}, texts("/containers/mc/install-logs"))
	h.refuse(400, "tail: must be a number between 0 and 10000", "GET", "/containers/mc/logs?tail=10001", nil)
	h.refuse(400, "since: must be a time (RFC 3339, or unix seconds)", "GET", "/containers/mc/logs?since=yesterday", nil)
	h.refuse(404, "Container not found", "GET", "/containers/none/logs", nil)
}

func TestEventsByREST(t *testing.T) {
	h := newHarness(t)
	require.JSONEq(t, `{"events":[],"epoch":"`+h.store.History.Epoch()+`","oldest":0,"newest":0}`, h.must("GET", "/events", nil).raw)
	h.container("mc", h.volume())
	for _, phase := range []v1.Phase{v1.Installing, v1.Ready, v1.Starting} {
		h.phase("mc", phase)
	}
	all := h.must("GET", "/events", nil).json["events"].([]any)
	require.Len(t, all, 3)
	first := all[0].(map[string]any)
	require.Equal(t, []any{1.0, "mc", "event", "installing"}, []any{first["seq"], first["container"], first["event"], first["data"]})
	require.Len(t, h.must("GET", "/events?since=1&limit=1", nil).json["events"], 1)
	require.Len(t, h.must("GET", "/events?since=3", nil).json["events"], 0)
	require.Len(t, h.must("GET", "/events?since=99", nil).json["events"], 0)
	_, err := h.store.TrimEvents(h.storeNow(), 1)
	require.NoError(t, err)
	trimmed := h.must("GET", "/events?since=0", nil).json
	require.Len(t, trimmed["events"], 1)
	require.Equal(t, 3.0, trimmed["oldest"])
	h.refuse(400, "since: must be the seq of an event", "GET", "/events?since=-1", nil)
	h.refuse(400, "limit: must be a number between 0 and 10000", "GET", "/events?limit=x", nil)
}
