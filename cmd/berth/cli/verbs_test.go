package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerbGoesOnAfterUnknownContainer(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"POST /containers/mc/kill": `200 {"message":"done"}`, "POST /containers/sick/kill": `500 {"error":"Internal server error"}`})
	out, _, err := command(t, f.env(), "kill", "nope", "mc", "neither", "sick", "mc")
	require.EqualError(t, err, "kill nope: Route not found\nkill neither: Route not found\nkill sick: Internal server error")
	require.Equal(t, "mc: done\nmc: done\n", out)
	require.Equal(t, exitError, ExitCode(err), "not found is less grave than a failure of the daemon")
}
