package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

// orders returns the power actions that are recorded, by their labels.
func (w *world) orders(t *testing.T) map[string]string {
	t.Helper()
	v, err := w.berth.API.Volumes().Get(t.Context(), w.berth.Container(t, alpha).VolumeID)
	require.NoError(t, err)
	orders := map[string]string{}
	for label, action := range v.Labels {
		if strings.HasPrefix(label, "wings.power.") {
			orders[label] = action
		}
	}
	return orders
}

// runs returns how often the server has been started.
func (w *world) runs(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.berth.Container(t, alpha).Mount.Source, "runs"))
	require.NoError(t, err)
	return strings.Count(string(text), "\n")
}

// TestPowerOutlivesTheBridge: an action that was answered is carried out by the next bridge, once.
func TestPowerOutlivesTheBridge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.panel.SetServer(t, strings.Replace(w.server(""), `"invocation": "`, `"invocation": "echo >> runs; `, 1))
	w.installed(t)
	away := func(c paneltest.Call) int { // the panel, so that an action does not begin
		if c.Method+" "+c.Path == "GET /servers/"+alpha {
			return 500
		}
		return 0
	}
	none := func() bool { return len(w.orders(t)) == 0 }
	w.panel.Fail(away)
	w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start"})
	w.stop()
	require.Len(t, w.orders(t), 1)
	w.panel.Fail(nil)
	w.run(t)
	w.state(t, "running")
	berthtest.Until(t, 3*time.Minute, "the start is done", none)
	require.Equal(t, 1, w.runs(t))

	// The bridge may end between berth's answer and the record of it.
	w.panel.Fail(away)
	w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "restart"})
	recorded := w.orders(t)
	require.Len(t, recorded, 1)
	w.panel.Fail(nil)
	berthtest.Until(t, 3*time.Minute, "the restart is done", none)
	berthtest.Until(t, 3*time.Minute, "it runs again", func() bool { return w.runs(t) == 2 })
	w.state(t, "running")
	w.stop()
	v := w.berth.Container(t, alpha)
	recorded["wings.uuid"] = alpha
	_, err := w.berth.API.Volumes().Change(t.Context(), v.VolumeID, v1.VolumeChange{Labels: &recorded})
	require.NoError(t, err)
	w.run(t)
	berthtest.Until(t, 3*time.Minute, "the restart is known to be done", none)
	require.Equal(t, v.StartedAt, w.berth.Container(t, alpha).StartedAt)
	require.Equal(t, 2, w.runs(t))
}

// TestBerthRestarts: what the panel requests while berth restarts is not refused: after an error it would forget a server that
// it had deleted.
func TestBerthRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	for _, r := range []struct {
		status       int
		method, path string
		body         any
	}{
		{202, "POST", "/power", map[string]any{"action": "start"}},
		{204, "POST", "/sync", nil},
		{202, "POST", "/backup", map[string]string{"adapter": "wings", "uuid": backupUUID(1), "ignore": ""}},
		{202, "POST", "/reinstall", nil},
		{204, "DELETE", "", nil},
	} {
		w.berth.Kill9(t)
		answer := make(chan paneltest.Answer)
		go func() {
			a, _ := w.Try(t, r.method, atAlpha+r.path, r.body) // no answer has no status
			answer <- a
		}()
		w.berth.Run(t)
		w.berth.Ready(t)
		a := <-answer
		require.Equal(t, r.status, a.Status, "%s %s: %s", r.method, r.path, a.Body)
		switch r.path {
		case "/power":
			w.state(t, "running")
			w.unmarked(t)
		case "/backup":
			require.Contains(t, w.panel.Await(t, "POST /backups/"+backupUUID(1), 1).Body, `"successful":true`)
		case "/reinstall":
			require.JSONEq(t, `{"successful":true,"reinstall":true}`, w.panel.Await(t, "POST /servers/"+alpha+"/install", 2).Body)
		}
	}
	berthtest.Until(t, 3*time.Minute, "it is deleted", func() bool { return len(w.berth.Containers(t, alpha)) == 0 })
}
