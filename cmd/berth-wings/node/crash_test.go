package node_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

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
