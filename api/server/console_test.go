package server

import (
	"testing"

	"github.com/stretchr/testify/require"

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
