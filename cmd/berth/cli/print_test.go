package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"GET /containers":    `200 {"containers":[{"internal_id":"a"},{"internal_id":"b"}]}`,
		"GET /network/ports": `200 {"ports":[{"ip":"::","port":1,"protocol":"tcp"}]}`,
		"GET /volumes":       `200 {"volumes":[{"volume_id":"v"}]}`, "POST /volumes": `201 {"volume_id":"w"}`,
		"POST /containers/a/stop": `200 {"message":"done"}`,
	})
	for line, want := range map[string]string{"containers": "a\nb\n", "ports": "[::]:1/tcp\n", "volumes": "v\n", "volumes create": "w\n", "stop a": "a\n"} {
		out, _, err := command(t, f.env(), append(strings.Fields(line), "-o", "name")...)
		require.NoError(t, err)
		require.Equal(t, want, out)
	}
}

func TestYAMLDocuments(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"POST /containers/a/stop": `200 {"message":"one"}`, "POST /containers/b/stop": `200 {"message":"two"}`})
	out, _, err := command(t, f.env(), "stop", "a", "b", "-o", "yaml")
	require.NoError(t, err)
	require.Equal(t, "---\nmessage: one\n---\nmessage: two\n", out)
}
