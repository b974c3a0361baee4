package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestStartTimeoutOverKills: starts whose pattern never matches are stopped gracefully
// once, although berth is killed while one is starting, and while the other is being
// stopped. What happened can be read afterwards.
func TestStartTimeoutOverKills(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{Env: []string{"BERTH_RECONCILE_START_WARNING=500ms"}})
	const waits = `echo >> runs; trap 'while [ ! -e leave ]; do usleep 20000; done; echo >> stops; exit 0' TERM; echo up; while :; do usleep 20000; done`
	spec := berthtest.Spec{"startup_command": waits, "start_pattern": "never printed", "start_timeout": "3s", "power": "running",
		"stop": berthtest.Spec{"timeout": "3m"}}
	b.Create(t, "waits", spec.With(berthtest.Spec{"restart_policy": map[string]string{"mode": "never"}}))
	b.Create(t, "retries", spec)
	unmatched := func(c berthtest.Container) v1.Condition {
		return v1.FindCondition(c.Conditions, v1.StartPatternNotMatched)
	}
	for _, id := range []string{"waits", "retries"} {
		c := b.Await(t, id, "reported as slow", func(c berthtest.Container) bool { return unmatched(c).Status == v1.True })
		require.Regexp(t, "no line of the console has matched start_pattern `never printed` since [0-9:]+ UTC; the run is stopped after 3s", unmatched(c).Message)
		require.Equal(t, c.State == v1.Starting, c.Deadline != nil)
	}
	b.Kill9(t)
	b.Run(t)
	b.Ready(t)
	b.State(t, "waits", "stopping")
	b.Kill9(t)
	b.Run(t)
	b.Ready(t)

	why := "did not become running within 3s: no line matched start_pattern `never printed`"
	for _, id := range []string{"waits", "retries"} {
		require.NoError(t, os.WriteFile(filepath.Join(b.Container(t, id).Mount.Source, "leave"), nil, 0o644))
		c := b.State(t, id, "exit")
		require.EqualValues(t, why, c.Message)
		require.Equal(t, 0, *c.ExitCode)
		require.Equal(t, id == "retries", c.NextRetryAt != nil)
		require.Equal(t, v1.False, unmatched(c).Status)
		require.Equal(t, []int{1, 1}, []int{c.Count("runs"), c.Count("stops")}, id)
		require.Equal(t, []string{
			"starting", "warning StartPatternNotMatched", "warning StartTimedOut", "stopping StartTimedOut", "exit StartTimedOut",
		}, afterReady(t, b, id))
	}
	c := b.State(t, "retries", "starting")
	require.Equal(t, 1, c.RestartCount)
}

// afterReady returns the stored transitions of a container after it was installed,
// each with its reason.
func afterReady(t *testing.T, b *berthtest.Berth, id string) (list []string) {
	t.Helper()
	events, err := b.API.Events().List(t.Context(), client.Cursor{}, 1000, client.EventFilter{Container: id})
	require.NoError(t, err)
	for _, e := range events.Events {
		switch text := e.Data; {
		case text == "ready":
			list = nil
		case e.Event == v1.EventMessage:
			list = append(list, "warning "+e.Reason)
		case e.Reason != "":
			list = append(list, text+" "+e.Reason)
		default:
			list = append(list, text)
		}
	}
	return list
}
