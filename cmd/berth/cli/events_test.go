package cli

import (
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
)

// TestEventsFollow prints each transition once, although the daemon begins with the
// current states, and names the flags that continue.
func TestEventsFollow(t *testing.T) {
	env, requested := newFakeSocket(t, websocket.CloseTryAgainLater, "too slow",
		`{"event":"gap","data":"4"}`, `{"event":"event","container":"a","data":"ready","seq":4}`, `{"event":"event","container":"b","data":"exit","seq":5}`,
		`{"event":"event","container":"a","data":"ready","seq":4}`, `{"event":"event","container":"b","data":"exit","seq":5}`,
		`{"event":"console","container":"b","data":"x"}`, `{"event":"daemon_message","container":"a","data":"a sentence","seq":6}`)
	out, errOut, err := command(t, env, "events", "-f", "--since", "1")
	require.Equal(t, "/ws?since=1", *requested)
	require.Regexp(t, `^ +4 .* a +ready\n +5 .* b +exit\n +6 .* a +a sentence\n$`, out)
	require.Equal(t, "berth: transitions before number 4 are not stored any more\n", errOut)
	require.EqualError(t, err, "the daemon closed the stream: too slow; continue with berth events -f --since 6")
}

// TestEventsFollowRestoredStore follows a store in which the numbers begin anew.
func TestEventsFollowRestoredStore(t *testing.T) {
	env, requested := newFakeSocket(t, websocket.CloseTryAgainLater, "too slow",
		`{"event":"gap","data":"1","epoch":"s-2"}`, `{"event":"event","container":"a","data":"ready","seq":4,"epoch":"s-2"}`)
	out, errOut, err := command(t, env, "events", "-f", "--since", "9", "--epoch", "s-1")
	require.Equal(t, "/ws?since=9&epoch=s-1", *requested)
	require.Regexp(t, `^ +4 .* a +ready\n$`, out)
	require.Contains(t, errOut, "the daemon's store was restored")
	require.EqualError(t, err, "the daemon closed the stream: too slow; continue with berth events -f --since 4 --epoch s-2")

	_, _, err = command(t, env, "events", "--epoch", "s-1")
	require.ErrorContains(t, err, "--epoch needs --since")
}
