package cli

import (
	"strings"
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

func TestLogsFollow(t *testing.T) {
	env, requested := newFakeSocket(t, websocket.CloseGoingAway, "shutting down",
		`{"event":"event","data":"running","seq":3}`, `{"event":"logs","data":"old\n"}`, `{"event":"stats","cpu_usage":1}`,
		`{"event":"console","data":"new\n"}`, `{"event":"daemon_message","data":"2 lines were dropped"}`)
	out, errOut, err := command(t, env, "logs", "mc", "-f", "-n", "7")
	require.Equal(t, "/ws/mc?tail=7", *requested)
	require.Equal(t, "old\nnew\n", out)
	require.Equal(t, "berth: state is running\nberth: 2 lines were dropped\n", errOut)
	require.EqualError(t, err, "mc: the daemon closed the stream: shutting down")

	out, _, _ = command(t, env, "logs", "mc", "-f", "-o", "json")
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 5, "each message is a line")

	_, _, err = command(t, env, "logs", "none", "-f")
	require.EqualError(t, err, "none: Container not found")
}
