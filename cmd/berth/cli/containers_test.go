package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
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

func TestContainersInDetail(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /containers/a": `200 {"internal_id":"a"}`, "GET /containers/b": `200 {"internal_id":"b"}`})
	out, _, err := command(t, f.env(), "containers", "a", "nope", "b")
	require.EqualError(t, err, "nope: Route not found")
	require.Equal(t, exitNotFound, ExitCode(err))
	require.Regexp(t, `(?s)^container: +a\n.*\n\ncontainer: +b\n`, out)
	out, _, err = command(t, f.env(), "containers", "a", "b", "-o", "yaml")
	require.NoError(t, err)
	require.Equal(t, "---\ninternal_id: a\n---\ninternal_id: b\n", out)
	out, _, err = command(t, f.env(), "containers", "a", "-o", "json")
	require.NoError(t, err)
	require.True(t, json.Valid([]byte(out)))
}

// TestStoredSpec requires that a printed spec can be given to apply.
func TestStoredSpec(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /containers/a/spec": `200 {"internal_id":"a","env":{"VERSION":"1.21"}}`, "GET /containers/b/spec": `200 {"internal_id":"b"}`})
	for want, args := range map[string][]string{
		"env:\n  VERSION: \"1.21\"\ninternal_id: a\n":                           {"a"},
		"---\nenv:\n  VERSION: \"1.21\"\ninternal_id: a\n---\ninternal_id: b\n": {"a", "b"},
		"a\n": {"a", "-o", "name"},
	} {
		out, _, err := command(t, f.env(), append([]string{"containers", "--spec"}, args...)...)
		require.NoError(t, err)
		require.Equal(t, want, out)
	}
	_, _, err := command(t, f.env(), "containers", "--spec")
	require.Equal(t, exitUsage, ExitCode(err))
	_, _, err = command(t, f.env(), "containers", "--spec", "nope")
	require.Equal(t, exitNotFound, ExitCode(err))
}

func TestWhy(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	soon, code := now.Add(75*time.Second), 137
	for want, c := range map[string]v1.ContainerState{
		"":                   {State: v1.Running, ExitCode: &code, OOMKilled: true},
		"restarted once":     {State: v1.Running, ExitCode: &code, RestartCount: 1},
		"unused image, soon": {State: v1.Ready, Message: "unused image, soon"},
		"out of memory, exit code 137, restarted 3 times, next attempt in 1m15s":       {State: v1.Exit, ExitCode: &code, OOMKilled: true, RestartCount: 3, NextRetryAt: &soon},
		"no line has matched start_pattern yet, last exit code 137, restarted 3 times": {State: v1.Starting, ExitCode: &code, RestartCount: 3},
		"the last lines are: a, start_timeout in 1m15s":                                {State: v1.Starting, Message: "the last lines are: a", Deadline: &soon},
		"the install script is running, install_timeout in 1m15s":                      {State: v1.Installing, ExitCode: &code, Deadline: &soon},
		"the script failed, exit code 137":                                             {State: v1.Failed, ExitCode: &code, Message: "the script failed"},
		"it ended with exit code 137":                                                  {State: v1.Failed, ExitCode: &code, Message: "it ended with exit code 137"},
		"the container ran out of memory, exit code 137":                               {State: v1.Exit, ExitCode: &code, Message: "the container ran out of memory", OOMKilled: true},
		"cannot pull, next attempt in 1m15s":                                           {State: v1.Installing, Message: "cannot pull", NextRetryAt: &soon},
		"cannot bind, next attempt in 1m15s":                                           {State: v1.Starting, Message: "cannot bind", NextRetryAt: &soon},
		"volume is gone, next attempt in 0s":                                           {State: v1.Exit, Message: "volume is gone", NextRetryAt: &now},
		"exit code 137, restarted once":                                                {State: v1.Exit, ExitCode: &code, RestartCount: 1},
		"cannot start: port is taken, start tried again once, next attempt in 1m15s":   {State: v1.Exit, Message: "cannot start: port is taken", RestartCount: 1, NextRetryAt: &soon},
		"cannot start: no sh, exit code 137, start tried again 2 times":                {State: v1.Exit, Message: "cannot start: no sh", ExitCode: &code, RestartCount: 2},
		"exit code 1: it crashed, exit code 137, restarted 2 times":                    {State: v1.Exit, Message: "exit code 1: it crashed", ExitCode: &code, StartedAt: &now, RestartCount: 2},
		"exit code 137, next attempt in 1m15s":                                         {State: v1.Exit, ExitCode: &code, NextRetryAt: &soon},
	} {
		require.Equal(t, want, why(c, now))
	}
}

func TestPortList(t *testing.T) {
	many := make([]v1.Port, 18)
	for i := range many {
		many[i] = v1.Port{IP: "0.0.0.0", Port: 25565 + len(many) - 1 - i, Protocol: "tcp"}
	}
	udp := v1.Port{IP: "0.0.0.0", Port: 25565, Protocol: "udp"}
	far := v1.Port{IP: "::1", Port: 25584, Protocol: "tcp"}
	require.Equal(t, "25565-25582/tcp,25565/udp,[::1]:25584/tcp", portList(append([]v1.Port{far, udp}, many...)))
	mapped := []v1.Port{{IP: "127.0.0.1", Port: 1, Protocol: "tcp", ContainerPort: 7}, {IP: "127.0.0.1", Port: 2, Protocol: "tcp", ContainerPort: 8},
		{IP: "127.0.0.1", Port: 3, Protocol: "tcp", ContainerPort: 8}, {IP: "127.0.0.1", Port: 4, Protocol: "tcp"}}
	require.Equal(t, "127.0.0.1:1-2/tcp->7-8,127.0.0.1:3/tcp->8,127.0.0.1:4/tcp", portList(mapped))
	require.Equal(t, 7, mapped[0].ContainerPort, "the caller's list stays in its order")
	require.Empty(t, portList(nil))
}

// TestVolumesNameTheirCause: a volume that is not ready has its cause beside it.
func TestVolumesNameTheirCause(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /volumes": `200 {"volumes":[{"volume_id":"a","ready":true},{"volume_id":"b","message":"claim b waits"}]}`})
	out, _, err := command(t, f.env(), "volumes")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^a .* true  +`, out)
	require.Regexp(t, `(?m)^b .* false: claim b waits  +`, out)
}

func TestVerbGoesOnAfterUnknownContainer(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"POST /containers/mc/kill": `200 {"message":"done"}`, "POST /containers/sick/kill": `500 {"error":"Internal server error"}`})
	out, _, err := command(t, f.env(), "kill", "nope", "mc", "neither", "sick", "mc")
	require.EqualError(t, err, "kill nope: Route not found\nkill neither: Route not found\nkill sick: Internal server error")
	require.Equal(t, "mc: done\nmc: done\n", out)
	require.Equal(t, exitError, ExitCode(err), "not found is less grave than a failure of the daemon")
}
