package cli

import (
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
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
	require.Regexp(t, `^ +SEQ  TIME +OBJECT +EVENT\n +4 .* a +ready\n +5 .* b +exit\n +6 .* a +a sentence\n$`, out)
	require.Equal(t, "berth: transitions before number 4 are not stored any more\n"+
		"berth: the daemon closed the stream: too slow; connecting again\n", errOut)
	require.EqualError(t, err, "the container is deleted; continue with berth events -f --since 6")
}

// TestEventsFollowRestoredStore follows a store in which the numbers begin anew.
func TestEventsFollowRestoredStore(t *testing.T) {
	env, requested := newFakeSocket(t, websocket.CloseTryAgainLater, "too slow",
		`{"event":"event","container":"a","data":"exit","seq":10,"epoch":"s-1"}`,
		`{"event":"gap","data":"1","epoch":"s-2"}`, `{"event":"event","container":"a","data":"ready","seq":4,"epoch":"s-2"}`)
	out, errOut, err := command(t, env, "events", "-f", "--since", "9")
	require.Equal(t, "/ws?since=9", *requested)
	require.Regexp(t, `^ +SEQ .*\n +10 .* a +exit\n +4 .* a +ready\n$`, out)
	require.Contains(t, errOut, "the daemon's store was restored")
	require.EqualError(t, err, "the container is deleted; continue with berth events -f --since 4")
}

func TestEventsShowActors(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /events?since=0&limit=1000": `200 {"events":[{"seq":8,"container":"mc","event":"event","data":"exit",
		"actor":{"token_id":"t","name":"panel","via":"http","on_behalf_of":"alice"}}]}`})
	out, _, err := command(t, f.env(), "events", "--since", "0", "-o", "wide")
	require.NoError(t, err)
	require.Contains(t, out, "mc                exit by panel on behalf of alice\n")
	out, _, err = command(t, f.env(), "events", "--since", "0")
	require.NoError(t, err)
	require.Contains(t, out, "mc                exit\n")
}

// TestEventsOfJobs: a transition of a backup, a restore or a download names it and its
// volume, also when it is followed.
func TestEventsOfJobs(t *testing.T) {
	const backup = `{"seq":8,"event":"backup","data":"running","backup":"b1","volume":"01234567-89ab"}`
	const restore = `{"seq":9,"event":"restore","data":"failed","backup":"b1","restore":"r1","volume":"01234567-89ab"}`
	const pull = `{"seq":10,"event":"pull","data":"completed","pull":"p1","volume":"01234567-89ab"}`
	const want = `^ +SEQ .*\n +8 .* 01234567 +backup b1 is running\n +9 .* 01234567 +restore r1 is failed\n +10 .* 01234567 +pull p1 is completed\n$`
	f := newFakeAPI(t, map[string]string{"GET /events?since=0&limit=1000": `200 {"events":[` + backup + "," + restore + "," + pull + "]}"})
	out, _, err := command(t, f.env(), "events", "--since", "0")
	require.NoError(t, err)
	require.Regexp(t, want, out)
	env, _ := newFakeSocket(t, websocket.CloseNormalClosure, "", backup, restore, pull)
	out, _, _ = command(t, env, "events", "-f", "--since", "7")
	require.Regexp(t, want, out)
}

// TestEventIsOneLine: the text of an event cannot look like another event.
func TestEventIsOneLine(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /events?since=0&limit=1000": `200 {"events":[
		{"seq":8,"container":"mc","event":"daemon_message","data":"exec: \"x\n     9  other  failed\r\u009b2K\""}]}`})
	out, _, err := command(t, f.env(), "events", "--since", "0")
	require.NoError(t, err)
	require.Regexp(t, `^ +SEQ .*\n +8  .*  mc +exec: "x      9  other  failed  2K"\n$`, out)
}

// TestCauseOfStart: a start that failed again is no restart.
func TestCauseOfStart(t *testing.T) {
	code := 3
	require.Equal(t, " (PortTaken, start tried again 2 times)", cause(v1.Event{Data: "exit", Reason: "PortTaken", RestartCount: 2}))
	require.Equal(t, " (Exited, exit code 3, restarted once)", cause(v1.Event{Data: "exit", Reason: "Exited", ExitCode: &code, RestartCount: 1}))
}

func TestAudit(t *testing.T) {
	const entry = `{"seq":7,"actor":{"token_id":"t","name":"panel","via":"http","on_behalf_of":"alice"},"action":"container.start","object":"mc","request_id":"r","status":403}`
	f := newFakeAPI(t, map[string]string{
		"GET /audit?last=1": `200 {"entries":[` + entry + `]}`,
		"GET /audit?since=6&limit=10000&container=mc&volume=v&actor=alice": `200 {"entries":[` + entry + `]}`,
	})
	out, _, err := command(t, f.env(), "audit", "-n", "1")
	require.NoError(t, err)
	require.Regexp(t, `7 +\S+ \S+ [+-]\d{4}  panel on behalf of alice +container\.start +mc +403`, out)
	out, _, err = command(t, f.env(), "audit", "--since", "6", "--container", "mc", "--volume", "v", "--actor", "alice", "-o", "json")
	require.NoError(t, err)
	require.Contains(t, out, `"object": "mc"`)
	out, _, err = command(t, f.env(), "audit", "-n", "1", "-o", "wide")
	require.NoError(t, err)
	require.Regexp(t, `panel on behalf of alice +t +http`, out, "two tokens may have one name")
	_, _, err = command(t, f.env(), "audit", "--since", "-3")
	require.ErrorContains(t, err, "must not be negative")
	_, _, err = command(t, f.env(), "events", "-n", "10001")
	require.ErrorContains(t, err, "--last must be 0 to 10000")
}
