package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

// newFakeSocket serves WebSockets: it sends messages and closes with code and reason.
func newFakeSocket(t *testing.T, code int, reason string, messages ...string) (env []string, requested *string) {
	requested = new(string)
	upgrader := websocket.Upgrader{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requested = r.URL.RequestURI()
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
		_, _, _ = ws.ReadMessage() // until the client has received it
	}))
	t.Cleanup(server.Close)
	return []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken}, requested
}

func TestLogsFollow(t *testing.T) {
	env, requested := newFakeSocket(t, websocket.CloseGoingAway, "shutting down",
		`{"event":"event","data":"running","seq":3}`, `{"event":"logs","data":"old\n"}`, `{"event":"stats","cpu_usage":1}`,
		`{"event":"console","data":"new\n"}`, `{"event":"daemon_message","data":"2 lines were dropped"}`)
	out, errOut, err := command(t, env, "logs", "mc", "-f", "-n", "7")
	require.Equal(t, "/ws/mc?tail=7", *requested)
	require.Equal(t, "old\nnew\n", out)
	require.Equal(t, "berth: state is running\nberth: 2 lines were dropped\n", errOut)
	require.EqualError(t, err, "mc: the daemon closed the stream: shutting down")

	out, _, _ = command(t, env, "logs", "mc", "-f", "-o", "json")
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 5, "each message is a line")

	_, _, err = command(t, env, "logs", "none", "-f")
	require.EqualError(t, err, "none: Container not found")
}

// TestEventsFollow prints each transition once, although the daemon begins with the
// current states, and names the flags that continue.
func TestEventsFollow(t *testing.T) {
	env, requested := newFakeSocket(t, websocket.CloseTryAgainLater, "too slow",
		`{"event":"gap","data":"4"}`, `{"event":"event","container":"a","data":"ready","seq":4}`, `{"event":"event","container":"b","data":"exit","seq":5}`,
		`{"event":"event","container":"a","data":"ready","seq":4}`, `{"event":"event","container":"b","data":"exit","seq":5}`,
		`{"event":"console","container":"b","data":"x"}`, `{"event":"daemon_message","container":"a","data":"a sentence","seq":6}`)
	out, errOut, err := command(t, env, "events", "-f", "--since", "1")
	require.Equal(t, "/ws?since=1", *requested)
	require.Regexp(t, `^ +4 .* a +ready\n +5 .* b +exit\n +6 .* a +a sentence\n$`, out)
	require.Equal(t, "berth: transitions before number 4 are not stored any more\n", errOut)
	require.EqualError(t, err, "the daemon closed the stream: too slow; continue with berth events -f --since 6")
}

// TestEventsFollowRestoredStore follows a store in which the numbers begin anew.
func TestEventsFollowRestoredStore(t *testing.T) {
	env, requested := newFakeSocket(t, websocket.CloseTryAgainLater, "too slow",
		`{"event":"gap","data":"1","epoch":"s-2"}`, `{"event":"event","container":"a","data":"ready","seq":4,"epoch":"s-2"}`)
	out, errOut, err := command(t, env, "events", "-f", "--since", "9", "--epoch", "s-1")
	require.Equal(t, "/ws?since=9&epoch=s-1", *requested)
	require.Regexp(t, `^ +4 .* a +ready\n$`, out)
	require.Contains(t, errOut, "the daemon's store was restored")
	require.EqualError(t, err, "the daemon closed the stream: too slow; continue with berth events -f --since 4 --epoch s-2")

	_, _, err = command(t, env, "events", "--epoch", "s-1")
	require.ErrorContains(t, err, "--epoch needs --since")
}
