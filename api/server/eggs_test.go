package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEgg: the spec of an answer can be sent as it is, and nothing is created before.
func TestEgg(t *testing.T) {
	h := newHarness(t)
	text := `{"meta":{"version":"PTDL_v2"},"docker_images":{"a":"debian:12"},"startup":"run","config":{"files":"{}","startup":"{}","stop":"^C"},
		"scripts":{"installation":{"script":"echo hi","container":"debian:12","entrypoint":"bash"}},"variables":[{"env_variable":"A","default_value":"1","rules":"required|integer"}]}`
	a := h.must("POST", "/eggs", object{"egg": text, "internal_id": "mc", "volume_id": h.volume(), "variables": object{"a": "x"}})
	require.Equal(t, `"x" breaks the rule integer`, a.json["variables"].([]any)[0].(map[string]any)["error"])
	spec := a.json["spec"].(map[string]any)
	require.Equal(t, "echo hi\nexit 0\n", spec["install_script"])
	require.Equal(t, 404, h.do(request{method: "GET", path: "/containers/mc"}).status)
	h.must("POST", "/containers", object(spec))

	h.refuse(400, "egg: the egg must be a JSON or YAML map", "POST", "/eggs", object{"egg": "[]"})
	limited := h.mint(object{"scopes": []string{"read", "files"}, "containers": []string{"mc"}})
	require.Equal(t, 403, h.do(request{method: "POST", path: "/eggs", body: `{"egg":"x"}`, token: limited}).status)
}
