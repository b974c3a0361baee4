package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPsOfUnreadyDaemon(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /readyz": `503 {"error":"Not ready: engine: does not answer"}`, "GET /containers": `200 {"containers":[]}`})
	for _, name := range []string{"ps", "status"} {
		out, _, err := command(t, f.env(), name)
		require.ErrorIs(t, err, ErrReported)
		require.Equal(t, "berth at "+f.server.URL+" is not ready: engine: does not answer; berth doctor names what to do\nThere are no containers.\n", out)
	}
	out, _, err := command(t, f.env(), "ps", "-o", "json")
	require.ErrorIs(t, err, ErrReported)
	require.JSONEq(t, `{"url":"`+f.server.URL+`","ready":false,"reason":"engine: does not answer","containers":[]}`, out)
}
