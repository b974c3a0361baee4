package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// echo answers each line of its console.
const echo = `echo first; echo second; while read line; do echo "you said $line"; done`

// TestEvents walks the events of the interface and the messages of a client.
func TestEvents(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", berthtest.Spec{"startup_command": echo, "start_pattern": "second", "limits": map[string]any{"memory": 64 << 20}})
	s := b.Listen(t, "/ws/mc")
	state, at := s.Event(t, 0, "mc", "running")
	require.Equal(t, 1, at, "the state comes first")
	require.NotZero(t, state.Seq)
	logs, at := s.Next(t, at, "logs", of("logs"))
	require.Equal(t, 2, at, "and then the last lines")
	require.Equal(t, "first\nsecond\n", strings.ReplaceAll(logs.Data, "\r", ""))

	s.Send(t, `{"event":"send_command","data":"hello"}`)
	s.Next(t, at, "the echo", messageWith("console", "you said hello"))
	b.Post(t, "/containers/mc/command", map[string]string{"command": "hi there"})
	s.Next(t, at, "the echo", messageWith("console", "you said hi there"))

	stats, _ := s.Next(t, at, "stats", of("stats"))
	holds(t, `{"event":"stats","memory_usage":"*","memory_limit":67108864,"time":"*"}`, []byte(stats.Raw), stats.Raw)
	for _, field := range strings.Fields("cpu_usage memory_usage memory_limit network_rx network_tx block_read block_write") {
		require.Contains(t, stats.Raw, `"`+field+`":`)
	}
	at = len(s.Messages())
	s.Send(t, `{"event":"request_stats"}`)
	s.Next(t, at, "stats", of("stats"))
	s.Send(t, `{"event":"request_logs","data":"1000"}`)
	logs, _ = s.Next(t, at, "logs", of("logs"))
	require.Contains(t, logs.Data, "you said hi there")
	for _, bad := range []string{"what", `{"event":"dance"}`, `{"event":"power","data":"up"}`, `{"event":"request_logs","data":"x"}`} {
		at = len(s.Messages())
		s.Send(t, bad)
		m, _ := s.Next(t, at, "a refusal", of("daemon_message"))
		require.Zero(t, m.Seq, "meant for one client")
	}
	at = len(s.Messages())
	for _, power := range [][2]string{{"restart", "running"}, {"stop", "exit"}, {"start", "running"}, {"kill", "exit"}} {
		s.Send(t, fmt.Sprintf(`{"event":"power","data":%q}`, power[0]))
		_, at = s.Event(t, at, "mc", power[1])
	}
	for _, m := range s.Messages() {
		require.False(t, m.Time.IsZero(), m.Raw)
		require.Empty(t, m.Container, "one container needs no name")
	}
}

func of(event string) func(berthtest.Message) bool {
	return func(m berthtest.Message) bool { return m.Event == event }
}

func messageWith(event, text string) func(berthtest.Message) bool {
	return func(m berthtest.Message) bool { return m.Event == event && strings.Contains(m.Data, text) }
}

func TestSocketsAreGuarded(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "mc", nil)
	bearer := http.Header{"Authorization": {"Bearer " + b.Token}}
	for _, c := range []struct {
		path   string
		header http.Header
		status int
	}{
		{"/ws/mc", nil, 401},
		{"/ws", nil, 401},
		{"/ws/mc?token=berth_", nil, 401},
		{"/ws/other", bearer, 404},
		{"/ws/mc", http.Header{"Authorization": bearer["Authorization"], "Origin": {"https://evil.example"}}, 403},
	} {
		_, response, err := b.Dial(c.path, c.header)
		require.Error(t, err, c.path)
		require.Equal(t, c.status, response.StatusCode, c.path)
	}
	s, _, err := b.Dial("/ws/mc?token="+b.Token, nil)
	require.NoError(t, err)
	s.Event(t, 0, "mc", "ready")
	s.Close()
}

// TestReplay: a client first receives the transitions that it missed, once and in
// order, also across a kill of the daemon; then the state and live messages.
func TestReplay(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", nil)
	b.Made(t, "other", nil)
	seen := b.Listen(t, "/ws/mc?tail=0")
	last, _ := seen.Event(t, 0, "mc", "running")
	b.Restart(t)
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	b.Verb(t, "other", "start")
	b.State(t, "other", "running")
	b.Verb(t, "mc", "start")
	b.State(t, "mc", "running")

	s := b.Listen(t, fmt.Sprintf("/ws/mc?tail=0&since=%d", last.Seq))
	s.Await(t, "the replay and the state", func(all []berthtest.Message) bool { return len(all) >= 4 })
	all := s.Messages()
	require.Equal(t, []string{"exit", "starting", "running", "running"}, []string{all[0].Data, all[1].Data, all[2].Data, all[3].Data})
	require.Less(t, last.Seq, all[0].Seq)
	require.Equal(t, all[2].Seq, all[3].Seq, "the state is that of the last transition")
	node := b.Listen(t, "/ws?since=0")
	stored := events(t, b)
	node.Await(t, "the replay", func(all []berthtest.Message) bool { return len(all) >= len(stored)+2 })
	for i, e := range stored {
		require.Equal(t, e.Seq, node.Messages()[i].Seq)
		require.Equal(t, e.Container, node.Messages()[i].Container)
	}
	gap := b.Listen(t, "/ws?since=999999")
	m, at := gap.Next(t, 0, "the gap", of("gap"))
	require.Equal(t, 1, at, "first of all")
	require.Equal(t, "1", m.Data)
}
