package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
)

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

// linesOf returns the data and the times of the lines of an answer, and its cursor.
func linesOf(a answer) (texts, times []string, line string) {
	for _, l := range a.json["lines"].([]any) {
		texts = append(texts, l.(object)["data"].(string))
		times = append(times, l.(object)["time"].(string))
	}
	return texts, times, a.json["line"].(string)
}

func TestLogsPage(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.print("mc", v1.InstallConsole, "installed")
	h.print("mc", v1.ServerConsole, "one", "two", "three")
	get := func(query string) answer { return h.must("GET", "/containers/mc/logs?"+query, nil) }
	last, times, line := linesOf(get("tail=2"))
	require.Equal(t, []string{"two", "three"}, last)
	first, _, _ := linesOf(get("tail=2&before=" + times[0]))
	require.Equal(t, []string{"installed", "one"}, first)
	after, _, _ := linesOf(get("since=" + times[0]))
	require.Equal(t, []string{"three"}, after, "since is exclusive")
	none, _, same := linesOf(get("since_line=" + line))
	require.Empty(t, none)
	require.Equal(t, line, same)
	h.print("mc", v1.ServerConsole, "four", "five")
	four, _, line := linesOf(get("tail=1&since_line=" + line))
	require.Equal(t, []string{"four"}, four, "the first ones behind it")
	five, _, _ := linesOf(get("since_line=" + line))
	require.Equal(t, []string{"five"}, five)
	unknown := get("since_line=1-2")
	require.Equal(t, "the container has no console line at since_line: all lines that are kept follow", unknown.json["missing"])
	require.Len(t, unknown.json["lines"], 6)
	for _, bad := range []string{"x", "1", "1.2", "1--2", "x-1", "1-99999999999999999999", strings.Repeat("1", 9000)} {
		h.refuse(400, "since_line: must be the line of a message or of logs", "GET", "/containers/mc/logs?since_line="+bad, nil)
	}
	h.refuse(400, "before: cannot be combined with since_line", "GET", "/containers/mc/logs?since_line=1-2&before=1", nil)
	h.refuse(400, "before: must be a time (RFC 3339, or unix seconds)", "GET", "/containers/mc/logs?before=never", nil)
	a := h.call("GET", "/ws?tail=3", nil)
	require.Equal(t, 426, a.status)
}

func TestLogsContent(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	h.print("mc", v1.InstallConsole, "installed")
	h.print("mc", v1.ServerConsole, "one", "\xff\x01€")
	const path = "/containers/mc/logs/content"
	a := h.do(request{method: "GET", path: path, accept: "-"})
	require.Equal(t, 200, a.status)
	require.Equal(t, "installed\none\n\xff\x01€\n", a.raw)
	require.Equal(t, "attachment; filename=mc.log", a.header.Get("Content-Disposition"))
	require.Equal(t, "text/plain; charset=utf-8", a.header.Get("Content-Type"))
	once := h.mint(object{"remove_on_use": true, "containers": []string{"mc"}, "scopes": []string{"read"}})
	a = h.do(request{method: "GET", path: path + "?token=" + once, token: "-", accept: "-"})
	require.Equal(t, 200, a.status)
	a = h.do(request{method: "GET", path: path + "?token=" + once, token: "-", accept: "-"})
	require.Equal(t, 401, a.status, "it is spent")
	h.refuse(404, "Container not found", "GET", "/containers/none/logs/content", nil)
}

func TestSocketResumesByLine(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	first := h.open("/ws/mc?tail=0")
	require.Equal(t, state(v1.Ready, 2), first.next())
	require.Equal(t, "0-0", first.line)
	h.print("mc", v1.InstallConsole, "installed")
	h.print("mc", v1.ServerConsole, "one")
	second := h.open("/ws/mc?since_line=" + first.line)
	require.Equal(t, state(v1.Ready, 2), second.next())
	require.Equal(t, object{"event": "console", "data": "installed\n"}, second.next())
	require.Equal(t, object{"event": "console", "data": "one\n"}, second.next())
	h.print("mc", v1.ServerConsole, "two")
	third := h.open("/ws/mc?since_line=" + second.line)
	require.Equal(t, state(v1.Ready, 2), third.next())
	require.Equal(t, object{"event": "console", "data": "two\n"}, third.next())
	h.print("mc", v1.ServerConsole, "three")
	require.Equal(t, object{"event": "console", "data": "three\n"}, third.next())
	unknown := h.open("/ws/mc?since_line=1-2")
	require.Equal(t, state(v1.Ready, 2), unknown.next())
	require.Equal(t, object{"event": "daemon_message", "since_line": "1-2",
		"data": "the container has no console line at since_line: all lines that are kept follow"}, unknown.next())
	require.Equal(t, "0-0", unknown.line)
	require.Equal(t, "installed\n", unknown.next()["data"])
	for path, text := range map[string]string{
		"/ws?since_line=1-2":    "since_line: unknown parameter; known: since, epoch, tail, token",
		"/ws/mc?since_line=yes": "since_line: must be the line of a message or of logs",
	} {
		_, resp, err := h.dialSocket(path, http.Header{"Authorization": {"Bearer " + adminToken}})
		require.Error(t, err)
		require.Equal(t, 400, resp.StatusCode)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), text)
	}
}

// TestCommandsOfATerminal requires that a command is refused that a terminal would cut, and
// control characters that end or suspend the program without the scope power.
func TestCommandsOfATerminal(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("mc", volume)
	h.must("POST", "/containers", object{"internal_id": "pipe", "image": "i", "volume_id": volume, "tty": false})
	long := strings.Repeat("x", 4096)
	h.refuse(400, "command: must have at most 4095 bytes a line, because a terminal keeps no more: containers with tty: false take longer ones",
		"POST", "/containers/mc/command", object{"command": "short\n" + long})
	h.must("POST", "/containers/mc/command", object{"command": long[1:] + "\n" + long[1:]})
	h.must("POST", "/containers/pipe/command", object{"command": long})
	h.refuse(400, "command: must not hold NUL", "POST", "/containers/mc/command", object{"command": "a\x00"})
	h.must("POST", "/containers/mc/command", object{"command": "\x03"})
	for scopes, want := range map[string]int{"console": 403, "console power": 200} {
		token := h.must("POST", "/auth/tokens", object{"scopes": strings.Fields(scopes), "containers": []string{"mc"}}).json["token"].(string)
		got := h.do(request{method: "POST", path: "/containers/mc/command", body: `{"command": "\u0003"}`, token: token})
		require.Equal(t, want, got.status, scopes)
	}
}

// TestQueuedCommandOfRevokedToken: a command that waits is not typed after its token was revoked.
func TestQueuedCommandOfRevokedToken(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	slots := h.server.handlers.consoles.processes.commands
	var leaves []func()
	for range limit.Commands().Tenant {
		leave, err := slots.Enter(t.Context(), limit.Claim{Tenant: "mc"})
		require.NoError(t, err)
		leaves = append(leaves, leave)
	}
	token := h.mint(object{"scopes": []string{"console"}, "containers": []string{"mc"}})
	got := make(chan answer, 1)
	go func() {
		got <- h.do(request{method: "POST", path: "/containers/mc/command", body: `{"command":"op me"}`, token: token})
	}()
	require.Eventually(t, func() bool { return slots.Waiting() == 1 }, time.Minute, time.Millisecond)
	h.must("DELETE", "/auth/tokens/"+v1.Secret(token).Fingerprint(), nil)
	for _, leave := range leaves {
		leave()
	}
	require.Equal(t, 401, (<-got).status)
	require.Empty(t, h.console.all())
}
