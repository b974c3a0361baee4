package e2e_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// actorsOf returns each state of a container with the name of the actor and how the
// request arrived.
func actorsOf(t *testing.T, b *berthtest.Berth, id string) (list []string) {
	t.Helper()
	var body struct{ Events []v1.Event }
	b.Get(t, "/events?type=event&container="+id, &body)
	for _, e := range body.Events {
		list = append(list, e.Data+" "+string(e.Actor.Via)+" "+e.Actor.String())
	}
	return list
}

// TestActorsOfTransitions follows requests of several tokens over kills of the daemon.
func TestActorsOfTransitions(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	panel := mint(t, b, `{"name":"panel"}`).Token
	b.Must(t, "POST", "/containers", b.Body(t, "mc", berthtest.Spec{"startup_command": echo, "restart_policy": map[string]any{"mode": "on-failure"}}),
		"Authorization", "Bearer "+panel, "X-Berth-Actor", "alice")
	b.State(t, "mc", "ready")
	b.Must(t, "POST", "/containers/mc/start", nil, "X-Berth-Actor", "bob")
	b.Restart(t)
	b.State(t, "mc", "running")

	s, _, err := b.Dial("/ws/mc", http.Header{"Authorization": {"Bearer " + panel}})
	require.NoError(t, err)
	defer s.Close()
	s.Send(t, `{"event":"power","data":"stop"}`)
	m, _ := s.Event(t, 0, "mc", "exit")
	require.Contains(t, m.Raw, `"actor":{"token_id":"`)
	require.Contains(t, m.Raw, `"name":"panel","via":"websocket","address":"127.0.0.1"}`)
	b.Verb(t, "mc", "start")
	b.State(t, "mc", "running")
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	want := []string{
		"installing http panel on behalf of alice", "ready http panel on behalf of alice",
		"starting http administrator on behalf of bob", "running http administrator on behalf of bob",
		"stopping websocket panel", "exit websocket panel",
		"starting http administrator", "running http administrator", "exit http administrator",
	}
	require.Equal(t, want, actorsOf(t, b, "mc"))
	require.Contains(t, b.Log(), `"actor":"panel on behalf of alice"`)
}
