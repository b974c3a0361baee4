package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m00s", 61 * time.Minute: "1h01m",
		47*time.Hour + 59*time.Minute: "47h59m", 48 * time.Hour: "2d", 80 * time.Hour: "3d",
	} {
		require.Equal(t, want, age(now.Add(-ago), now))
	}
	require.Empty(t, age(time.Time{}, now))
}

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
