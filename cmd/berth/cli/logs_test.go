package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

func TestLogsFollow(t *testing.T) {
	messages := []string{`{"event":"event","data":"running","seq":3}`, `{"event":"logs","data":"old\n"}`, `{"event":"stats","cpu_usage":1}`,
		`{"event":"console","data":"new\n"}`, `{"event":"daemon_message","data":"2 lines were dropped"}`}
	env, requested := newFakeSocket(t, websocket.CloseGoingAway, "shutting down", messages...)
	out, errOut, err := command(t, env, "logs", "mc", "-f", "-n", "7")
	require.Equal(t, "/ws/mc?tail=7", *requested)
	require.Equal(t, "old\nnew\n", out)
	require.Equal(t, "berth: state is running\nberth: 2 lines were dropped\n"+
		"berth: the daemon closed the stream: shutting down; connecting again\n", errOut)
	require.EqualError(t, err, "mc: the container is deleted")

	env, _ = newFakeSocket(t, websocket.CloseGoingAway, "shutting down", messages...)
	out, _, _ = command(t, env, "logs", "mc", "-f", "-o", "json")
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 5, "each message is a line")

	_, _, err = command(t, env, "logs", "none", "-f")
	require.EqualError(t, err, "none: Container not found")
}

// TestLogsSince prints every line since a time, in several requests if there are many.
func TestLogsSince(t *testing.T) {
	page := func(from, n int) string {
		lines := make([]string, n)
		for i := range lines {
			lines[i] = fmt.Sprintf(`{"time":%q,"data":"line %d"}`, time.Unix(int64(from+i), 0).UTC().Format(time.RFC3339), from+i)
		}
		return `200 {"line":"7.7","lines":[` + strings.Join(lines, ",") + `]}`
	}
	const since = "since=1970-01-01T00%3A01%3A00Z"
	f := newFakeAPI(t, map[string]string{
		"GET /containers/mc/logs?tail=10000&" + since:                                      page(1000, maxLines),
		"GET /containers/mc/logs?tail=10000&" + since + "&before=1970-01-01T00%3A16%3A40Z": page(990, 10),
		"GET /containers/mc/logs?tail=10000&" + since + "&before=1970-01-01T00%3A16%3A30Z": `200 {"line":"7.7","lines":[]}`,
		"GET /containers/mc/logs?tail=2&" + since:                                          page(5, 2),
	})
	out, _, err := command(t, f.env(), "logs", "mc", "--since", "1970-01-01T00:01:00Z")
	require.NoError(t, err)
	rows := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	require.Len(t, rows, maxLines+10)
	for i, row := range rows {
		require.Equal(t, "line "+strconv.Itoa(990+i), row)
	}
	out, _, err = command(t, f.env(), "logs", "mc", "--since", "1970-01-01T00:01:00Z", "-o", "json")
	require.NoError(t, err)
	require.Equal(t, maxLines+10, strings.Count(out, `"data"`))
	require.True(t, json.Valid([]byte(out)))
	out, _, err = command(t, f.env(), "logs", "mc", "--since", "1970-01-01T00:01:00Z", "--tail", "2", "-t")
	require.NoError(t, err)
	require.Contains(t, out, time.Unix(5, 0).Format(timeFormat)+" line 5\n")
	for _, args := range []string{"--since yesterday", "--since 25:00", "--tail -1", "--tail 10001", "-f --install"} {
		_, _, err = command(t, f.env(), append([]string{"logs", "mc"}, strings.Fields(args)...)...)
		require.Equal(t, exitUsage, ExitCode(err), args)
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"15m": now.Add(-15 * time.Minute), "2d": now.Add(-48 * time.Hour), "2026-11-22": now.Add(-3 * time.Hour), "": {},
		"2026-11-22 02:30:00": now.Add(-30 * time.Minute), "2026-11-22 02:30:00.250": now.Add(-30*time.Minute + 250*time.Millisecond),
		now.UTC().Format(time.RFC3339): now,
	} {
		got, err := parseTime(text, now)
		require.NoError(t, err)
		require.True(t, got.Equal(want), "%s: %s", text, got)
	}
}

// TestLogsFollowSince continues behind the lines that it has printed.
func TestLogsFollowSince(t *testing.T) {
	var requested []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = append(requested, r.URL.RequestURI())
		if r.URL.Path == "/containers/mc/logs" {
			_, _ = io.WriteString(w, `{"line":"3.4","lines":[{"time":"1970-01-01T00:00:05Z","data":"past"}]}`)
			return
		}
		upgrader := websocket.Upgrader{}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for _, m := range []string{`{"event":"logs","data":"one\ntwo\n","time":"1970-01-01T00:00:09Z","times":["1970-01-01T00:00:06Z","1970-01-01T00:00:07Z"]}`,
			`{"event":"console","data":"half","time":"1970-01-01T00:00:08Z"}`, `{"event":"console","data":" line\n","time":"1970-01-01T00:00:09Z"}`} {
			_ = ws.WriteMessage(websocket.TextMessage, []byte(m))
		}
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
		_, _, _ = ws.ReadMessage()
	}))
	defer server.Close()
	out, _, err := command(t, []string{"BERTH_URL=" + server.URL, "BERTH_TOKEN=x"}, "logs", "mc", "-ft", "--since", "1970-01-01T00:00:01Z", "-n", "9")
	require.Equal(t, exitNotFound, ExitCode(err), "%v", err)
	require.Equal(t, []string{"/containers/mc/logs?tail=9&since=1970-01-01T00%3A00%3A01Z", "/ws/mc?tail=0&since_line=3.4"}, requested)
	at := func(second int64) string { return time.Unix(second, 0).Format(timeFormat) }
	require.Equal(t, at(5)+" past\n"+at(6)+" one\n"+at(7)+" two\n"+at(8)+" half line\n", out)
}
