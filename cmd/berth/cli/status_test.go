package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatusOfUnreadyDaemon(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /readyz": `503 {"error":"Not ready: engine: does not answer"}`, "GET /containers": `200 {"containers":[]}`})
	out, _, err := command(t, f.env(), "status")
	require.ErrorIs(t, err, ErrReported)
	require.Contains(t, out, "Not ready: engine: does not answer\nThere are no containers.")
}
