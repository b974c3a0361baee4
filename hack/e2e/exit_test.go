package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestCrashIsRetried: a run that fails is repeated after the time in next_retry_at.
func TestCrashIsRetried(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	began := time.Now()
	b.Create(t, "mc", berthtest.Spec{"startup_command": `echo >> runs; [ $(wc -l < runs) = 1 ] && { sleep 0.3; exit 3; }; sleep 100000`, "power": "running"})
	c := b.State(t, "mc", "exit")
	require.NotNil(t, c.NextRetryAt)
	require.False(t, c.NextRetryAt.After(time.Now().Add(10*time.Second)))
	require.False(t, c.NextRetryAt.Before(began.Add(10*time.Second)))
	require.Equal(t, 3, *c.ExitCode)
	require.Equal(t, v1.PowerOn, c.Power)
	b.Restart(t)                                           // next_retry_at survives
	if now := b.Container(t, "mc"); now.State == v1.Exit { // it is not due yet
		require.Equal(t, c.NextRetryAt, now.NextRetryAt)
	}
	c = b.State(t, "mc", "running")
	require.Equal(t, 1, c.RestartCount)
	require.Nil(t, c.NextRetryAt)
	berthtest.Until(t, 3*time.Minute, "the second run has counted itself", func() bool { return c.Count("runs") == 2 })
}

// TestOutOfMemory: berth reports an exit as out of memory, and not a kill.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	s := b.Listen(t, "/ws")
	b.Create(t, "mc", berthtest.Spec{"startup_command": "tail /dev/zero", "power": "running", "limits": map[string]any{"memory": 16 << 20},
		"restart_policy": map[string]any{"mode": "never"}})
	c := b.State(t, "mc", "exit")
	for range 5 { // a busy engine sometimes misses it
		if berthtest.Within(5*time.Second, func() bool { c = b.Container(t, "mc"); return c.OOMKilled }) {
			break
		}
		require.False(t, reportsOOM(t, b, c.ContainerID), "the engine has reported it")
		b.Verb(t, "mc", "start")
		c = b.Await(t, "mc", "its end", func(c berthtest.Container) bool { return c.State == "exit" && c.ObservedGeneration == c.Generation })
	}
	require.True(t, c.OOMKilled)
	require.Contains(t, c.Message, "out of memory")
	s.Next(t, 0, "the message", messageWith("daemon_message", "out of memory"))
	b.Started(t, "other", nil)
	b.Verb(t, "other", "kill")
	c = b.State(t, "other", "exit")
	require.False(t, c.OOMKilled)
	require.Equal(t, 137, *c.ExitCode)
}

// reportsOOM reports whether the engine has sent an event that a container ran out
// of memory. A cluster has none.
func reportsOOM(t *testing.T, b *berthtest.Berth, containerID string) bool {
	t.Helper()
	if b.Cluster != nil {
		return false
	}
	filter := url.QueryEscape(fmt.Sprintf(`{"container":[%q],"event":["oom"]}`, containerID))
	return len(b.Engine.Must(t, http.MethodGet, fmt.Sprintf("/events?since=0&until=%d&filters=%s", time.Now().Unix(), filter), nil)) > 0
}

// TestFrozenDaemonBlocksNoContainer: while the daemon is suspended, containers keep
// running at full speed although they print a lot. Later no line is missing.
func TestFrozenDaemonBlocksNoContainer(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	wide := strings.Repeat("x", 1000)
	c := b.Started(t, "mc", berthtest.Spec{"startup_command": `i=0; while :; do i=$((i+1)); echo "` + wide + ` tick $i"; echo >> n; [ $((i%20)) = 0 ] && usleep 20000; done`})
	b.Signal(t, syscall.SIGSTOP)
	before := c.Count("n")
	berthtest.Until(t, wait, "the container runs on", func() bool { return c.Count("n") > before+2000 })
	b.Signal(t, syscall.SIGCONT)
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	list := journal(t, b, "mc")
	requireNoGap(t, "journal", list)
	require.InDelta(t, c.Count("n"), list[len(list)-1], 1, "killed between the two, perhaps")
}

// TestUnmanagedContainersAreUntouched: berth does not touch containers without this
// store's label, not even one with a name that berth needs.
func TestUnmanagedContainersAreUntouched(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	sum := sha256.Sum256([]byte(b.Store()))
	name := "berth-" + hex.EncodeToString(sum[:4]) + "-server-mc"
	body := b.Body(t, "mc", nil)
	foreign := map[string]any{"Image": body["image"], "Cmd": []string{"sleep", "100000"}}
	other := b.Engine.CreateRaw(t, "", map[string]any{"Image": body["image"], "Cmd": []string{"sleep", "100000"}, "Labels": map[string]string{
		"io.berth.store": "another", "io.berth.container": "mc", "io.berth.role": "server"}})
	inTheWay := b.Engine.CreateRaw(t, name, foreign)
	for _, id := range []string{other, inTheWay} {
		require.Equal(t, 204, b.Engine.Act(t, id, "start"))
	}
	b.Post(t, "/containers", body)
	c := b.Await(t, "mc", "a message names the obstacle", func(c berthtest.Container) bool { return c.Message != "" })
	t.Log(c.Message)
	b.Restart(t)
	b.Must(t, "DELETE", "/containers/mc", nil)
	b.Gone(t, "mc")
	for _, id := range []string{other, inTheWay} {
		one, found := b.Engine.Inspect(t, id)
		require.True(t, found)
		require.True(t, one.State.Running, "untouched")
	}
	b.Create(t, "mc", body)
	b.Await(t, "mc", "the obstacle is named again", func(c berthtest.Container) bool { return c.Message != "" })
	b.Engine.Remove(t, inTheWay)
	b.Await(t, "mc", "the container is created once the obstacle is gone", func(c berthtest.Container) bool { return c.ContainerID != "" })
}
