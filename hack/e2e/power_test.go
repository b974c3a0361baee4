package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestStartAfterKill kills a container and starts it as soon as berth reports
// exit. It does so only after the container's exit, so each start is a new run.
func TestStartAfterKill(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", berthtest.Spec{"startup_command": `echo >> runs; echo up; sleep 100000`, "start_pattern": "up"})
	s := b.Listen(t, "/ws/mc?tail=0")
	tries, at := rounds(25, 200), 0
	var slowest time.Duration
	for range tries {
		var exit, running berthtest.Message
		b.Verb(t, "mc", "kill")
		exit, at = s.Event(t, at, "mc", "exit")
		require.Empty(t, b.Processes(t)["mc"], "berth reports exit only after the container's exit")
		b.Verb(t, "mc", "start")
		running, at = s.Event(t, at, "mc", "running")
		slowest = max(slowest, running.Read.Sub(exit.Read))
		require.NotEmpty(t, b.Processes(t)["mc"])
	}
	require.Equal(t, 1+tries, b.Container(t, "mc").Count("runs"))
	t.Logf("%d of %d end running; slowest exit to running %s", tries, tries, slowest.Round(time.Millisecond))
}

// verbs maps each verb to its final state.
var verbs = map[string]string{"start": "running", "stop": "exit", "kill": "exit", "restart": "running"}

// TestEveryPairOfVerbs posts every pair of verbs in quick succession. The second
// verb decides the final state, also if the daemon is killed in between.
func TestEveryPairOfVerbs(t *testing.T) {
	t.Parallel()
	b, random := berthtest.Start(t, berthtest.Options{}), dice(t)
	b.Started(t, "mc", berthtest.Spec{"startup_command": polite, "start_pattern": "up"})
	for round := range rounds(2, 10) {
		for first := range verbs {
			for second := range verbs {
				pairOfVerbs(t, b, first, second, time.Duration(random.IntN(500))*time.Millisecond, round%2 == 1, round%4 == 3)
			}
		}
	}
}

func pairOfVerbs(t *testing.T, b *berthtest.Berth, first, second string, after time.Duration, killBetween, killBehind bool) {
	t.Helper()
	b.Verb(t, "mc", first)
	pause(after)
	if killBetween {
		b.Restart(t)
	}
	b.Verb(t, "mc", second)
	if killBehind {
		b.Restart(t)
	}
	b.Await(t, "mc", first+" and "+second, func(c berthtest.Container) bool {
		return string(c.State) == verbs[second] && c.ObservedGeneration == c.Generation
	})
	require.Equal(t, verbs[second] == "running", b.Processes(t)["mc"] != "", "%s, %s later %s; killed: %t, %t",
		first, after, second, killBetween, killBehind)
}
