package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// interference is a change that somebody else makes to a container with the
// engine's own commands, and its expected result.
type interference struct {
	name     string
	power    string                                                             // desired: running or stopped
	act      func(t *testing.T, e *enginetest.Client, id string)                // the change
	reported string                                                             // the first state that reports it; empty: none
	end      string                                                             // the final state
	right    func(before, now enginetest.Container, c berthtest.Container) bool // checks the engine and GET at the end
}

// outside returns a function that acts through the engine's API.
func outside(action string) func(*testing.T, *enginetest.Client, string) {
	return func(t *testing.T, e *enginetest.Client, id string) {
		t.Helper()
		require.Equal(t, 204, e.Act(t, id, action), action)
	}
}

func replaced(before, now enginetest.Container, _ berthtest.Container) bool {
	return now.ID != before.ID && now.State.Running
}

func retried(_, now enginetest.Container, c berthtest.Container) bool {
	return !now.State.Running && c.NextRetryAt != nil && c.Power == "running"
}

func same(before, now enginetest.Container, _ berthtest.Container) bool {
	return now.State.Running && !now.State.Paused && now.State.Pid == before.State.Pid && now.State.StartedAt.Equal(before.State.StartedAt)
}

func off(_, now enginetest.Container, _ berthtest.Container) bool { return !now.State.Running }

var interferences = []interference{
	{"removed", "running", func(t *testing.T, e *enginetest.Client, id string) { e.Remove(t, id) }, "exit", "running", replaced},
	{"killed", "running", outside("kill"), "exit", "exit", retried},
	{"stopped", "running", outside("stop?t=5"), "exit", "exit", retried},
	{"paused", "running", outside("pause"), "", "running", same},
	{"renamed", "running", func(t *testing.T, e *enginetest.Client, id string) {
		outside("rename?name=berth-e2e-"+id[:12])(t, e, id)
	}, "", "running", same},
	{"started", "stopped", outside("start"), "stopping", "exit", off},
	{"removed while off", "stopped", func(t *testing.T, e *enginetest.Client, id string) { e.Remove(t, id) }, "", "ready",
		func(before, now enginetest.Container, _ berthtest.Container) bool {
			return now.ID != before.ID && now.ID != ""
		}},
}

func TestInterferenceFromOutside(t *testing.T) {
	t.Parallel()
	up, down := berthtest.Start(t, berthtest.Options{}), berthtest.Start(t, berthtest.Options{})
	for _, c := range interferences {
		t.Run(c.name, func(t *testing.T) {
			t.Run("up", func(t *testing.T) { c.whileUp(t, up) })
			t.Run("down", func(t *testing.T) { c.whileDown(t, down) })
		})
	}
}

// whileUp interferes while the daemon runs, and measures the time until it reports it.
func (c interference) whileUp(t *testing.T, b *berthtest.Berth) {
	id, before := c.begin(t, b)
	s := b.Listen(t, "/ws/"+id+"?tail=0")
	s.Await(t, "the first state", func(all []berthtest.Message) bool { return len(all) > 0 })
	began := time.Now()
	c.act(t, b.Engine, before.ID)
	acted := time.Now()
	if c.reported != "" {
		m, _ := s.Event(t, 1, id, c.reported)
		t.Logf("reported %s after the engine's answer, %s after the request to the engine",
			m.Read.Sub(acted).Round(time.Millisecond), m.Read.Sub(began).Round(time.Millisecond))
		require.Less(t, m.Read.Sub(acted), 20*time.Second)
	}
	c.check(t, b, id, before)
	if c.reported == "" {
		t.Logf("repaired %s after the engine's answer", time.Since(acted).Round(time.Millisecond))
	}
}

// whileDown interferes while the daemon does not run.
func (c interference) whileDown(t *testing.T, b *berthtest.Berth) {
	id, before := c.begin(t, b)
	b.Kill9(t)
	c.act(t, b.Engine, before.ID)
	b.Run(t)
	b.Ready(t)
	ready := time.Now()
	c.check(t, b, id, before)
	t.Logf("repaired %s after the daemon was ready", time.Since(ready).Round(time.Millisecond))
}

// begin creates a container and waits for its desired state.
func (c interference) begin(t *testing.T, b *berthtest.Berth) (id string, before enginetest.Container) {
	t.Helper()
	id = "c-" + berthtest.NewToken()[6:14]
	b.Create(t, id, berthtest.Spec{"power": c.power})
	state := map[string]string{"running": "running", "stopped": "ready"}[c.power]
	now := b.Await(t, id, state, func(c berthtest.Container) bool { return string(c.State) == state && c.ContainerID != "" })
	before, found := b.Engine.Inspect(t, now.ContainerID)
	require.True(t, found)
	t.Cleanup(func() { b.Delete(t, id) })
	return id, before
}

// check waits for the expected result.
func (c interference) check(t *testing.T, b *berthtest.Berth, id string, before enginetest.Container) {
	t.Helper()
	b.Await(t, id, c.name+" is right", func(now berthtest.Container) bool {
		one, _ := b.Engine.Inspect(t, now.ContainerID)
		return string(now.State) == c.end && c.right(before, one, now) && onlyServer(t, b, id)
	})
}
