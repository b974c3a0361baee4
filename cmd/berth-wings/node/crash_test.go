package node_test

import (
	"encoding/json"
	"fmt"
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

// TestCrash: a page and the log of the panel have why a server exited.
func TestCrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start"})
	w.state(t, "running")
	page := w.open(t, "websocket.connect")
	w.Want(t, 204, "POST", atAlpha+"/commands", map[string]any{"commands": []string{"crash"}})
	const daemon = "\x1b[33m\x1b[1m[Pelican Daemon]:\x1b[39m "
	page.Until("console output", daemon+"---------- Detected server process in a crashed state! ----------\x1b[0m")
	page.Until("console output", daemon+"Exit code: 3\x1b[0m")
	page.Until("console output", daemon+"Out of memory: false\x1b[0m")
	var sent struct {
		Data []struct {
			Event    string
			User     *string
			IP       string
			Metadata struct {
				Code   int   `json:"exit_code"`
				Killed *bool `json:"oomkilled"`
				Logs   []string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(w.panel.Await(t, "POST /activity", 1).Body), &sent))
	require.Len(t, sent.Data, 1)
	require.Equal(t, "server:crashed", sent.Data[0].Event)
	require.Nil(t, sent.Data[0].User)
	require.Equal(t, "127.0.0.1", sent.Data[0].IP)
	require.Equal(t, 3, sent.Data[0].Metadata.Code)
	require.False(t, *sent.Data[0].Metadata.Killed)
	require.Contains(t, sent.Data[0].Metadata.Logs, "fatal")

	// A stop is none.
	w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "kill"})
	w.state(t, "offline")
	require.Len(t, w.panel.Calls("POST /activity"), 1)
}

// TestCrashWithoutABridge: crashes while no bridge runs are in the activity of the next one, once.
func TestCrashWithoutABridge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start"})
	w.state(t, "running")
	w.unmarked(t)
	crash := func() {
		t.Helper()
		before := w.berth.Container(t, alpha).StartedAt
		require.NoError(t, w.berth.API.Containers().Send(t.Context(), alpha, "crash"))
		berthtest.Until(t, 3*time.Minute, "it runs again", func() bool {
			v := w.berth.Container(t, alpha)
			return v.State == v1.Running && !v.StartedAt.Equal(*before)
		})
	}
	type entry struct {
		Event     string
		Timestamp time.Time
		Metadata  struct {
			Code int `json:"exit_code"`
			Logs []string
		}
	}
	crashes := func(count int) (list []entry) {
		t.Helper()
		berthtest.Until(t, 3*time.Minute, fmt.Sprint(count, " crashes are reported"), func() bool {
			list = nil
			for _, c := range w.panel.Calls("POST /activity") {
				var sent struct{ Data []entry }
				require.NoError(t, json.Unmarshal([]byte(c.Body), &sent))
				list = append(list, sent.Data...)
			}
			return len(list) >= count
		})
		require.Len(t, list, count)
		berthtest.Until(t, 3*time.Minute, "the bridge has the panel's answer: one that ends before reports again", func() bool {
			kept, err := os.ReadFile(filepath.Join(w.root, "berth-wings", "activity.jsonl"))
			return err == nil && !strings.Contains(string(kept), "server:crashed")
		})
		return list
	}
	w.stop()
	crash()
	crash()
	began := time.Now()
	w.run(t)
	for _, e := range crashes(2) {
		require.Equal(t, "server:crashed", e.Event)
		require.Equal(t, 3, e.Metadata.Code)
		require.Equal(t, "fatal", e.Metadata.Logs[len(e.Metadata.Logs)-1])
		require.True(t, e.Timestamp.Before(began))
	}
	w.stop()
	w.run(t)
	crash()
	crashes(3)
}

// TestNewSecret: the panel has given the node another secret, which counts at once, both ways.
func TestNewSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.Want(t, 200, "POST", "/api/update", map[string]any{"token": paneltest.Token[1:] + "Z"})
	require.Equal(t, 403, w.Do(t, "GET", "/api/system", nil).Status)
	before := len(w.panel.Calls("GET /servers/" + alpha))
	a := w.Do(t, "POST", atAlpha+"/sync", nil, "Authorization", "Bearer "+paneltest.Token[1:]+"Z")
	require.Equal(t, 500, a.Status, "the panel of this test knows the old one: %s", a.Body)
	require.Equal(t, 403, w.panel.Calls("GET /servers/" + alpha)[before].Status)
}
