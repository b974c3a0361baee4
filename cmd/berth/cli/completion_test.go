package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shellComplete returns what a shell receives for a line whose last word is incomplete.
func shellComplete(t *testing.T, env []string, line string) string {
	t.Helper()
	out, errOut, err := command(t, env, append([]string{"__complete"}, strings.Split(line, " ")...)...)
	require.NoError(t, err)
	require.Regexp(t, "^Completion ended with directive: [A-Za-z, ]+\n$", errOut, line)
	return out
}

func TestCompletion(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"GET /containers":    `200 {"containers":[{"internal_id":"mc","state":"running"},{"internal_id":"lobby","state":"exit"}]}`,
		"GET /containers/mc": "200 " + oneContainer,
		"GET /volumes":       `200 {"volumes":[{"volume_id":"3f2a91c0-0000-4000-8000-000000000000","used_by":["mc","lobby"]}]}`,
		"GET /auth/tokens":   `200 {"tokens":[{"id":"t1","expires_at":"then"}]}`,
	})
	const both = "mc\trunning\nlobby\texit\n:4\n"
	for line, want := range map[string]string{
		"start ": both, "logs ": both, "reinstall mc ": "lobby\texit\n:4\n", "logs mc ": ":4\n", "delete l": "lobby\texit\n:4\n",
		"wait ": both, "wait mc r": "ready\nrunning\n:4\n", "wait mc lobby deleted ": "ready\nrunning\nexit\nfailed\ndeleted\n:4\n",
		"volumes delete 3": "3f2a91c0-0000-4000-8000-000000000000\tmc lobby\n:4\n", "volumes change 3": "3f2a91c0-0000-4000-8000-000000000000\tmc lobby\n:4\n", "token revoke ": "t1\tthen\n:4\n",
		"events --container m": "mc\trunning\n:4\n", "audit --container l": "lobby\texit\n:4\n", "top l": "lobby\texit\n:4\n", "attach m": "mc\trunning\n:4\n", "events --volume ": "3f2a91c0-0000-4000-8000-000000000000\tmc lobby\n:4\n",
		"token create --container ": both, "token create --scope ": "read\npower\nconsole\nfiles\nnetwork\nadmin\narrive\n:4\n",
		"files ls m": "mc:\trunning\n:6\n", "files cat mc:": ":6\n", "files put ": ":0\n", "files get mc:world ": ":0\n",
	} {
		require.Equal(t, want, shellComplete(t, f.env(), line), line)
	}
}

// TestCompletionIsSilent completes without a daemon, without a configuration, and with a
// daemon that does not answer.
func TestCompletionIsSilent(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer server.Close()
	defer close(stop)
	for _, env := range [][]string{
		{"BERTH_URL=http://127.0.0.1:1", "BERTH_TOKEN=" + clientToken}, {"BERTH_CONFIG=/does/not/exist"}, {"BERTH_URL=nonsense"},
		{"BERTH_CONTEXT=unknown", "HOME=/nonexistent"}, {"BERTH_URL=" + server.URL, "BERTH_TOKEN=" + clientToken},
	} {
		began := time.Now()
		require.Equal(t, ":4\n", shellComplete(t, env, "start "), env)
		require.Less(t, time.Since(began), 3*completionTimeout, env)
	}
	require.Equal(t, "ready\nrunning\nexit\nfailed\ndeleted\n:4\n", shellComplete(t, nil, "wait mc "), "states need no daemon")
}
