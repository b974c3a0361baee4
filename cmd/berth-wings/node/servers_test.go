package node_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

// TestLifeOfAServer is what an administrator and a schedule of the panel do with a server.
func TestLifeOfAServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := "/api/servers/" + alpha
	w.Want(t, 422, "POST", "/api/servers", map[string]any{"uuid": "not-a-uuid"})
	w.Want(t, 500, "POST", "/api/servers", map[string]any{"uuid": "99999999-9999-4999-8999-999999999999"})
	w.Want(t, 202, "POST", "/api/servers", map[string]any{"uuid": alpha, "start_on_completion": true})
	require.JSONEq(t, `{"successful":true,"reinstall":false}`, w.panel.Await(t, "POST /servers/"+alpha+"/install", 1).Body, "the script exits with 7")
	require.JSONEq(t, `{"data":"installing\r\n"}`, w.Want(t, 200, "GET", at+"/install-logs", nil).Body)
	w.state(t, "running")
	require.JSONEq(t, `{"data":{"previous_state":"offline","new_state":"starting"}}`, w.panel.Await(t, "POST /servers/"+alpha+"/container/status", 1).Body)

	w.Want(t, 204, "POST", at+"/commands", map[string]any{"commands": []string{"one", "two"}})
	berthtest.Until(t, 3*time.Minute, "the console", func() bool {
		var logs struct{ Data []string }
		w.Want(t, 200, "GET", at+"/logs", nil).Decode(t, &logs)
		require.NotContains(t, logs.Data, "installing")
		return slices.Contains(logs.Data, "Done") && logs.Data[len(logs.Data)-1] == "got two"
	})

	// A change waits for the next start, limits do not.
	before := w.berth.Processes(t)
	w.panel.SetServer(t, w.server(`"labels": {"a": "b"}, `))
	w.Want(t, 204, "POST", at+"/sync", nil)
	berthtest.Until(t, 3*time.Minute, "the labels wait", func() bool {
		return strings.Contains(string(w.berth.Do(t, "GET", "/containers/"+alpha, nil).Body), `"type":"Pending","status":"True"`)
	})
	require.Equal(t, before, w.berth.Processes(t), "it runs on")
	w.Want(t, 202, "POST", at+"/power", map[string]any{"action": "restart"})
	w.panel.Await(t, "POST /servers/"+alpha+"/container/status", 6)
	w.state(t, "running")
	w.Want(t, 202, "POST", at+"/power", map[string]any{"action": "stop", "wait_seconds": 60})
	w.state(t, "offline")
	w.panel.Await(t, "POST /servers/"+alpha+"/container/status", 8)
	var spec struct{ Labels map[string]string }
	w.berth.Get(t, "/containers/"+alpha+"/spec", &spec)
	require.Equal(t, "b", spec.Labels["a"])
	w.Want(t, 502, "POST", at+"/commands", map[string]any{"commands": []string{"x"}})

	w.panel.SetServer(t, w.server(`"suspended": true, `))
	w.Want(t, 202, "POST", at+"/power", map[string]any{"action": "start"})
	w.unmarked(t)
	w.state(t, "offline")
	w.Want(t, 204, "POST", at+"/sync", nil)
	require.Equal(t, "Cannot start or restart a server that is suspended.", w.Want(t, 400, "POST", at+"/power", map[string]any{"action": "start"}).Error())
	w.panel.SetServer(t, w.server(""))
	w.Want(t, 202, "POST", at+"/reinstall", nil)
	require.JSONEq(t, `{"successful":true,"reinstall":true}`, w.panel.Await(t, "POST /servers/"+alpha+"/install", 2).Body)

	w.Want(t, 204, "DELETE", at, nil)
	w.Want(t, 404, "GET", at, nil)
	berthtest.Until(t, 3*time.Minute, "all is removed", func() bool {
		var volumes struct{ Volumes []any }
		var ports struct{ Ports []any }
		w.berth.Get(t, "/volumes", &volumes)
		w.berth.Get(t, "/network/ports", &ports)
		return len(volumes.Volumes)+len(ports.Ports) == 0
	})
}

// TestInstallationOutlivesTheBridge: one that fails while no bridge runs is reported as failed by the next one.
func TestInstallationOutlivesTheBridge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.panel.SetScript(alpha, "berth-test/busybox:1", "sh", "while :; do sleep 1; done")
	w.Want(t, 202, "POST", "/api/servers", map[string]any{"uuid": alpha})
	task := func() string {
		var list struct{ Volumes []v1.VolumeView }
		w.berth.Get(t, "/volumes", &list)
		if len(list.Volumes) == 0 {
			return ""
		}
		return list.Volumes[0].Labels["wings.task"]
	}
	berthtest.Until(t, 3*time.Minute, "berth has it", func() bool { return task() == "report" })
	w.stop()
	berthtest.Until(t, 3*time.Minute, "the script runs, and is killed", func() bool {
		list := w.berth.Containers(t, alpha)
		return len(list) == 1 && w.berth.Engine.Act(t, list[0].ID, "kill") == 204
	})
	w.berth.State(t, alpha, "failed")
	require.Empty(t, w.panel.Calls("POST /servers/"+alpha+"/install"))
	w.run(t)
	require.JSONEq(t, `{"successful":false,"reinstall":false}`, w.panel.Await(t, "POST /servers/"+alpha+"/install", 1).Body)
	berthtest.Until(t, 3*time.Minute, "no task is left", func() bool { return task() == "" })
	w.stop()
	w.run(t)
	require.Len(t, w.panel.Calls("POST /servers/"+alpha+"/install"), 1, "once")
}

// TestStatesInOrder: a change that the panel did not take at once comes before the next one.
func TestStatesInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	failed := false
	w.panel.Fail(func(c paneltest.Call) int {
		if failed || !strings.HasSuffix(c.Path, "/container/status") {
			return 0
		}
		failed = true
		return 500
	})
	w.Want(t, 202, "POST", "/api/servers/"+alpha+"/power", map[string]any{"action": "start"})
	at := "POST /servers/" + alpha + "/container/status"
	w.panel.Await(t, at, 3)
	var sent []string
	for _, c := range w.panel.Calls(at) {
		sent = append(sent, strconv.Itoa(c.Status)+c.Body)
	}
	starting := `{"data":{"new_state":"starting","previous_state":"offline"}}`
	require.Equal(t, []string{"500" + starting, "200" + starting, `200{"data":{"new_state":"running","previous_state":"starting"}}`}, sent)
}

// TestFilesOfWings: a server whose files wings has is not given an empty volume.
func TestFilesOfWings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := filepath.Join(w.root, "volumes", alpha)
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.Equal(t, 500, w.Do(t, "POST", "/api/servers", map[string]any{"uuid": alpha}).Status)
	require.NoError(t, os.Remove(folder))
	w.installed(t)
}
