package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

// newFakeInstallation serves a container whose installation ends while its second socket
// is open. That one lacks the last line. refusals is how often the daemon does not answer
// when it is asked whether the installation has ended.
func newFakeInstallation(t *testing.T, refusals int) (env []string, requests *[]string) {
	requests = new([]string)
	sockets := [][]string{
		{`{"event":"event","data":"stopping","seq":1}`, `{"event":"console","data":"bye\n","line":"a-6"}`, `{"event":"event","data":"installing","seq":2}`,
			`{"event":"console","data":"one\n","line":"a-7","time":"1970-01-01T00:00:06Z"}`, `{"event":"daemon_message","data":"pulling"}`},
		{`{"event":"event","data":"ready","seq":3}`, `{"event":"stats","cpu_usage":1}`},
	}
	answers := map[string]string{
		"/containers/mc/install-logs?tail=100":                  `{"line":"a-5","lines":[{"time":"1970-01-01T00:00:05Z","data":"past"}]}`,
		"/containers/mc/install-logs?tail=10000&since_line=a-5": `{"line":"a-6","lines":[]}`,
		"/containers/mc/install-logs?tail=10000&since_line=a-6": `{"line":"a-7","lines":[{"time":"1970-01-01T00:00:06Z","data":"one"}]}`,
		"/containers/mc/install-logs?tail=10000&since_line=a-7": `{"line":"a-8","lines":[{"time":"1970-01-01T00:00:07Z","data":"two"}]}`,
		"/containers/mc/install-logs?tail=10000&since_line=a-8": `{"line":"a-8","lines":[]}`,
		"/containers/mc":                         `{"internal_id":"mc","install_state":"ready"}`,
		"/containers/done/install-logs?tail=100": `{"line":"a-5","lines":[{"time":"1970-01-01T00:00:05Z","data":"past"}]}`,
		"/containers/done":                       `{"internal_id":"done","install_state":"failed"}`,
	}
	var mu sync.Mutex
	next := func(uri string) (answer string, messages []string) {
		mu.Lock()
		defer mu.Unlock()
		*requests = append(*requests, uri)
		switch {
		case uri == "/containers/mc" && len(sockets) > 0:
			return `{"internal_id":"mc","install_state":"installing"}`, nil
		case uri == "/containers/mc" && refusals > 0:
			refusals--
			return "", nil
		case strings.HasPrefix(uri, "/ws/mc?") && len(sockets) > 0:
			messages, sockets = sockets[0], sockets[1:]
		}
		return answers[uri], messages
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, messages := next(r.URL.RequestURI())
		switch {
		case messages != nil:
			sendMessages(w, r, messages)
		case answer != "":
			_, _ = io.WriteString(w, answer)
		case r.URL.Path == "/containers/mc":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			http.Error(w, `{"error":"Container not found"}`, http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=x"}, requests
}

// sendMessages sends messages over a WebSocket and closes it as a daemon that stops.
func sendMessages(w http.ResponseWriter, r *http.Request, messages []string) {
	upgrader := websocket.Upgrader{}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	for _, m := range messages {
		_ = ws.WriteMessage(websocket.TextMessage, []byte(m))
	}
	_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, "shutting down"), time.Now().Add(time.Second))
	_, _, _ = ws.ReadMessage() // until the client has received it
}

// TestLogsFollowInstall prints each line of an installation once, over a restart of the
// daemon, and ends with it.
func TestLogsFollowInstall(t *testing.T) {
	for _, refusals := range []int{0, 1} {
		env, requests := newFakeInstallation(t, refusals)
		out, errOut, err := command(t, env, "logs", "mc", "-f", "--install")
		require.NoError(t, err)
		require.Equal(t, "past\none\ntwo\n", out)
		require.Equal(t, "berth: state is stopping\nberth: state is installing\nberth: pulling\n"+
			"berth: the daemon closed the stream: shutting down; connecting again\nberth: state is ready\n", errOut)
		require.Equal(t, 3+refusals, strings.Count(strings.Join(*requests, "\n")+"\n", "/containers/mc\n"), "asked once after each state: %v", *requests)
		require.Contains(t, *requests, "/ws/mc?tail=0&since_line=a-5")
		require.Contains(t, *requests, "/ws/mc?tail=0&since_line=a-7")
	}
	env, _ := newFakeInstallation(t, 0)
	out, _, err := command(t, env, "logs", "mc", "-f", "--install", "-t")
	require.NoError(t, err)
	at := func(second int64) string { return time.Unix(second, 0).Format(timeFormat) }
	require.Equal(t, at(5)+" past\n"+at(6)+" one\n"+at(7)+" two\n", out)

	env, _ = newFakeInstallation(t, 0)
	out, _, err = command(t, env, "logs", "mc", "-f", "--install", "-o", "json")
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 7, "three pages and four messages: %s", out)
	require.NotContains(t, out, "bye")

	env, requests := newFakeInstallation(t, 0)
	out, _, err = command(t, env, "logs", "done", "-f", "--install")
	require.NoError(t, err)
	require.Equal(t, "past\n", out)
	require.Equal(t, []string{"/containers/done", "/containers/done/install-logs?tail=100"}, *requests)

	_, _, err = command(t, env, "logs", "none", "-f", "--install")
	require.Equal(t, exitNotFound, ExitCode(err))
}
