package cli

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /node": `200 {"version":"1.2.3"}`})
	own := "client:  0.0.0 (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")\n"
	out, _, err := command(t, f.env(), "version")
	require.NoError(t, err)
	require.Equal(t, own+"server:  1.2.3 ("+f.server.URL+")\n", out)
	out, _, err = command(t, f.env(), "version", "-o", "json")
	require.NoError(t, err)
	require.JSONEq(t, `{"client":{"version":"0.0.0","commit":"","go":"`+runtime.Version()+`","platform":"`+runtime.GOOS+"/"+runtime.GOARCH+`"},
		"server":{"version":"1.2.3","url":"`+f.server.URL+`"}}`, out)

	away := []string{"BERTH_URL=http://127.0.0.1:1", "BERTH_TOKEN=x", "BERTH_CONFIG=/none"}
	out, _, err = command(t, away, "version")
	require.Equal(t, exitUnavailable, ExitCode(err))
	require.Equal(t, own, out)
	out, _, err = command(t, away, "version", "--client")
	require.NoError(t, err)
	require.Equal(t, own, out)
	_, _, err = command(t, append(f.env(), "BERTH_TOKEN=x"), "version")
	require.Equal(t, exitDenied, ExitCode(err))
}
