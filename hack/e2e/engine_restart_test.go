package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// reluctant exits with 0, 2 s after SIGTERM.
const reluctant = `echo >> runs; trap 'sleep 2; echo >> stops; exit 0' TERM; echo up; while :; do usleep 20000; done`

// TestEngineRestartsGracefully: an engine that shuts down sends SIGTERM to each
// container while its event stream is open. Whatever its exit code, each runs again.
func TestEngineRestartsGracefully(t *testing.T) {
	t.Parallel()
	engine := enginetest.StartIsolated(t)
	b := berthOn(t, engine)
	ids := []string{"quick", "slow"}
	for i, script := range []string{polite, reluctant} {
		b.Started(t, ids[i], berthtest.Spec{"image": engine.Busybox(t), "startup_command": script, "start_pattern": "up",
			"restart_policy": map[string]any{"mode": "never"}})
	}
	for round, away := range []bool{false, true} {
		before := map[string]berthtest.Container{}
		for _, id := range ids {
			before[id] = b.Container(t, id)
		}
		if away {
			b.Kill9(t)
		}
		engine.Terminate(t)
		if !away {
			berthtest.Until(t, wait, "the condition EngineReachable is False", func() bool {
				return strings.Contains(string(b.Do(t, "GET", "/containers/quick", nil).Body), `"type":"EngineReachable","status":"False"`)
			})
		}
		engine.Start(t)
		if away {
			b.Run(t)
			b.Ready(t)
		}
		for _, id := range ids {
			c := b.Await(t, id, "another run", func(c berthtest.Container) bool {
				return c.State == "running" && c.StartedAt != nil && !c.StartedAt.Equal(*before[id].StartedAt)
			})
			require.True(t, onlyServer(t, b, id), id)
			require.Equal(t, round+2, c.Count("runs"), id)
			require.Equal(t, round+1, c.Count("stops"), id)
		}
	}
	b.Verb(t, "quick", "stop")
	b.State(t, "quick", "exit")
}
