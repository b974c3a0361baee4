package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

// newFakeSocket sends messages to whoever connects, then closes.
func newFakeSocket(t *testing.T, code int, reason string, messages ...string) (env []string, asked *string) {
	asked = new(string)
	upgrader := websocket.Upgrader{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.URL.RequestURI()
		if r.Header.Get("Authorization") != "Bearer "+clientToken || r.URL.Path == "/ws/none" {
			http.Error(w, `{"error":"Container not found"}`, http.StatusNotFound)
			return
		}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for _, m := range messages {
			_ = ws.WriteMessage(websocket.TextMessage, []byte(m))
		}
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
		_, _, _ = ws.ReadMessage() // until the client has seen it
	}))
	t.Cleanup(server.Close)
	return []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, asked
}

func TestFollowingLogs(t *testing.T) {
	env, asked := newFakeSocket(t, websocket.CloseGoingAway, "shutting down",
		`{"event":"event","data":"running","seq":3}`, `{"event":"logs","data":"old\n"}`, `{"event":"stats","cpu_usage":1}`,
		`{"event":"console","data":"new\n"}`, `{"event":"daemon_message","data":"2 lines were left out"}`)
	out, said, err := command(t, env, "logs", "mc", "-f", "-n", "7")
	require.Equal(t, "/ws/mc?tail=7", *asked)
	require.Equal(t, "old\nnew\n", out)
	require.Equal(t, "berth: state is running\nberth: 2 lines were left out\n", said)
	require.EqualError(t, err, "mc: the daemon closed the stream: shutting down")

	out, _, _ = command(t, env, "logs", "mc", "-f", "-o", "json")
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 5, "each message is a line")

	_, _, err = command(t, env, "logs", "none", "-f")
	require.EqualError(t, err, "none: Container not found")
}

// TestFollowingEvents prints each transition once, though the daemon begins with
// the current states, and says how to go on.
func TestFollowingEvents(t *testing.T) {
	env, asked := newFakeSocket(t, websocket.CloseTryAgainLater, "too slow",
		`{"event":"gap","data":"4"}`, `{"event":"event","container":"a","data":"ready","seq":4}`, `{"event":"event","container":"b","data":"exit","seq":5}`,
		`{"event":"event","container":"a","data":"ready","seq":4}`, `{"event":"event","container":"b","data":"exit","seq":5}`,
		`{"event":"console","container":"b","data":"x"}`, `{"event":"daemon_message","container":"a","data":"a sentence","seq":6}`)
	out, said, err := command(t, env, "events", "-f", "--since", "1")
	require.Equal(t, "/ws?since=1", *asked)
	require.Regexp(t, `^ +4 .* a +ready\n +5 .* b +exit\n +6 .* a +a sentence\n$`, out)
	require.Equal(t, "berth: what was before number 4 is no longer kept\n", said)
	require.EqualError(t, err, "the daemon closed the stream: too slow; go on with berth events -f --since 6")
}

// TestFollowingEventsOfARestoredStore: the same numbers are others then.
func TestFollowingEventsOfARestoredStore(t *testing.T) {
	env, asked := newFakeSocket(t, websocket.CloseTryAgainLater, "too slow",
		`{"event":"gap","data":"1","epoch":"s-2"}`, `{"event":"event","container":"a","data":"ready","seq":4,"epoch":"s-2"}`)
	out, said, err := command(t, env, "events", "-f", "--since", "9", "--epoch", "s-1")
	require.Equal(t, "/ws?since=9&epoch=s-1", *asked)
	require.Regexp(t, `^ +4 .* a +ready\n$`, out)
	require.Contains(t, said, "the daemon's store was restored")
	require.EqualError(t, err, "the daemon closed the stream: too slow; go on with berth events -f --since 4 --epoch s-2")

	_, _, err = command(t, env, "events", "--epoch", "s-1")
	require.ErrorContains(t, err, "--epoch needs --since")
}

func TestApply(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"PUT /containers/mc":              `201 {"state":"installing","power":"running"}`,
		"PUT /containers/mc?dry_run=true": `200 {"changed":true,"actions":[{"action":"recreate","reason":"image changed"}]}`,
	})
	file := filepath.Join(t.TempDir(), "mc.yaml")
	require.NoError(t, os.WriteFile(file, []byte("internal_id: mc\nimage: a:1\nports:\n- {ip: 0.0.0.0, port: 1, protocol: tcp}\nlimits: {cpu: 0.5}\n"), 0o600))
	const body = `{"image":"a:1","internal_id":"mc","limits":{"cpu":0.5},"ports":[{"ip":"0.0.0.0","port":1,"protocol":"tcp"}]}`
	out, _, err := command(t, f.env(), "apply", "-f", file)
	require.NoError(t, err)
	require.Equal(t, "mc: applied; state is installing, power is running\n", out)
	out, _, err = command(t, f.env(), "apply", "-f", file, "--dry-run")
	require.NoError(t, err)
	require.Equal(t, "mc:  recreate  image changed\n", out)
	require.Equal(t, []string{"PUT /containers/mc " + body, "PUT /containers/mc?dry_run=true " + body}, f.asked)

	for text, want := range map[string]string{"image: a": "internal_id is required", "\tx": "cannot start any token", "": "internal_id is required"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, _, err = command(t, f.env(), "apply", "-f", file)
		require.ErrorContains(t, err, want)
	}
	_, _, err = command(t, f.env(), "apply")
	require.ErrorContains(t, err, `"file" not set`)
}
