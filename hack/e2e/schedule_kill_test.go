package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestKilledSchedules kills the daemon when each step of a run was recorded. Whatever the step was, no request is
// repeated or lost, a line is sent once at most, and the run completes.
func TestKilledSchedules(t *testing.T) {
	t.Parallel()
	rounds := rounds(6, 50)
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", berthtest.Spec{"volume_id": b.Volume(t), "start_pattern": "Done", "stop": map[string]any{"command": "exit"},
		"startup_command": "echo Done; while read line; do echo \"got $line\"; test \"$line\" = exit && exit; done"})
	const path = "/containers/mc/schedules/nightly"
	for round := range rounds {
		b.Must(t, "PUT", path, map[string]any{"cron": "@yearly", "steps": []map[string]any{
			{"command": fmt.Sprintf("first-%d.", round)}, {"wait": "1s"}, {"backup": map[string]any{"keep": 2}},
			{"power": "restart"}, {"wait_for": "running", "timeout": "2m"}, {"command": fmt.Sprintf("last-%d.", round)}}})
		b.Post(t, path+"/run", nil)
		run := func() (s v1.ScheduleProgress) {
			var view struct{ Status v1.ScheduleProgress }
			require.NoError(t, json.Unmarshal(b.Must(t, "GET", path, nil).Body, &view))
			return view.Status
		}
		step := round%6 + 1
		berthtest.Until(t, 2*time.Minute, fmt.Sprintf("round %d is in step %d", round, step), func() bool {
			s := run()
			return s.Runs == uint64(round+1) && s.LastRun.Step >= step
		})
		b.Kill9(t)
		b.Run(t)
		b.Ready(t)
		berthtest.Until(t, 2*time.Minute, fmt.Sprintf("round %d has ended", round), func() bool { return run().LastRun.State != v1.RunRunning })
		s := run()
		require.Equal(t, v1.RunCompleted, s.LastRun.State, s.LastRun.Message)
		require.Equal(t, uint64(round+1), s.Runs)
	}
	var log struct{ Entries []v1.AuditEntry }
	require.NoError(t, json.Unmarshal(b.Must(t, "GET", "/audit?actor=nightly&limit=10000", nil).Body, &log))
	actions := map[string]int{}
	for _, e := range log.Entries {
		require.Equal(t, v1.ViaSchedule, e.Actor.Via)
		actions[e.Action]++
	}
	require.Equal(t, map[string]int{"backup.create": rounds, "container.restart": rounds, "container.command": 2 * rounds}, actions)
	lines := string(b.Must(t, "GET", "/containers/mc/logs?tail=10000", nil).Body)
	require.Equal(t, rounds, strings.Count(lines, "got exit"), "each restart stops the server once")
	sent := 0
	for round := range rounds {
		for _, line := range []string{"first", "last"} {
			n := strings.Count(lines, fmt.Sprintf("got %s-%d.", line, round))
			require.LessOrEqual(t, n, 1, "%s-%d", line, round)
			sent += n
		}
	}
	t.Logf("%d runs with a kill each: %d of %d lines sent", rounds, sent, 2*rounds)
	require.Greater(t, sent, rounds)
}
