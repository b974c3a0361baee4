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
		"ports": []any{map[string]any{"ip": "127.0.0.1", "port": 1000.0, "protocol": "tcp"}}, "tty": true,
		"limits": map[string]any{"memory": 536870912.0, "cpu": 1.5},
		"mount":  map[string]any{"source": "/data/volumes/" + volume, "target": "/home/container"},
	}
	for field, want := range state {
		require.Equal(t, want, got.json[field], field)
		require.Contains(t, got.json, field)
	}
	require.NotContains(t, got.json, "install_script")
	require.Len(t, got.json["conditions"], 1, "EngineReachable")
	require.IsType(t, 0.0, got.json["created_at"])
	require.IsType(t, 0.0, got.json["updated_at"])

	list := h.must("GET", "/containers", nil).json["containers"].([]any)
	require.Len(t, list, 1)
	summary := object{"internal_id": "mc", "container_id": "", "install_state": "installing", "image": "busybox:1"}
	for field, want := range summary {
		require.Equal(t, want, list[0].(map[string]any)[field])
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
