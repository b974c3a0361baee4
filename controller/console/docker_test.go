package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/pkg/stdcopy"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/controller/console"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/runtime"
	"berth/runtime/docker"
)

// helperJob in the environment makes the test binary a berth that only reads consoles
// until it is killed.
const helperJob = "BERTH_CONSOLE_HELPER"

type job struct {
	Store, Dir, Host string
	Targets          []runtime.Target
}

// runHelper reads the consoles of a job.
func runHelper(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	e, err := docker.New(docker.Config{Host: j.Host, StoreID: j.Store}, prometheus.NewRegistry(), slog.Default())
	if err != nil {
		return err
	}
	m := console.New(e, stream.New(j.Dir, stream.Options{}), console.Options{})
	for _, t := range j.Targets {
		m.Follow(t)
	}
	return m.Run(context.Background())
}

// counter returns a command that prints 0 to n-1 at rate lines per second and exits.
func counter(n, rate int) []string { return counts(fmt.Sprintf("[ $i -lt %d ]", n), rate) }

// untilTerm returns a command that prints numbers from 0 on at rate lines per second
// until it receives SIGTERM, and then "end" and their count.
func untilTerm(rate int) []string {
	cmd := counts(`[ -z "$stop" ]`, rate)
	cmd[2] = "trap stop=1 TERM; " + cmd[2] + `; echo "end $i"`
	return cmd
}

func counts(while string, rate int) []string {
	burst := max(1, rate/50)
	script := fmt.Sprintf(`i=0; while %s; do j=0; while [ $j -lt %d ] && %s; do echo "line $i"; i=$((i+1)); j=$((j+1)); done; sleep %f; done`,
		while, burst, while, float64(burst)/float64(rate))
	return []string{"/bin/sh", "-c", script}
}

// TestKilledBerthLosesNothing kills berth 12 times, with BERTH_LONG 25 times, while 20 containers,
// with and without a terminal, print at 1 to 5,000 lines a second.
func TestKilledBerthLosesNothing(t *testing.T) {
	t.Parallel()
	engine, most := enginetest.Shared(t), 12
	if os.Getenv("BERTH_LONG") != "" {
		most = 25
	}
	image := engine.Busybox(t)
	j := job{Store: "console-" + uuid.NewString(), Dir: t.TempDir()}
	rates := []int{1, 50, 200, 500, 5000}
	want := map[string]int{}
	for i := range 20 {
		id, rate := fmt.Sprintf("c%d", i), rates[i%len(rates)]
		want[id] = min(20_000, rate*12)
		j.Targets = append(j.Targets, start(t, engine, image, j.Store, id, i%2 == 0, counter(want[id], rate)))
	}
	kills := 0
	for seen := journalSize(t, j.Dir); kills < most; kills++ {
		more := seen + 1 + rand.Int64N(200_000)
		kill := helper(t, j)
		require.Eventually(t, func() bool {
			seen = journalSize(t, j.Dir)
			return seen >= more || allEnded(t, engine, j.Targets)
		}, 8*time.Minute, time.Millisecond)
		kill()
	}
	require.Eventually(t, func() bool { return allEnded(t, engine, j.Targets) }, 8*time.Minute, 50*time.Millisecond)
	defer helper(t, j)()
	requireWhole(t, j.Dir, want)
}

// requireWhole waits until the journals have the output of each counter, once.
func requireWhole(t *testing.T, dir string, want map[string]int) {
	t.Helper()
	for id, n := range want {
		requireCount(t, id, awaitJournal(t, dir, id, func(got []string) bool { return len(got) >= n }), n)
	}
}

func requireCount(t *testing.T, id string, got []string, n int) {
	t.Helper()
	for i, text := range got {
		require.Equal(t, fmt.Sprintf("line %d", i), text, id)
	}
	require.Len(t, got, n, id)
}

// awaitJournal reads a journal until it is whole, for at most three minutes.
func awaitJournal(t *testing.T, dir, id string, whole func([]string) bool) (got []string) {
	t.Helper()
	berthtest.Within(8*time.Minute, func() bool {
		got = journal(t, dir, id)
		return whole(got)
	})
	return got
}

// TestKilledEngineLosesNothing kills and terminates an engine with live-restore six
// times while berth reads. The containers exit afterwards, because no engine receives
// what a container prints before its exit while there is no engine. An engine that is
// killed also loses lines that it has read and not yet written to its log.
func TestKilledEngineLosesNothing(t *testing.T) {
	t.Parallel()
	engine := enginetest.StartIsolated(t, "--live-restore")
	image := engine.Busybox(t)
	j := job{Store: "console-" + uuid.NewString(), Dir: t.TempDir(), Host: engine.Host()}
	rates := []int{1, 200, 2000}
	for i := range 6 {
		j.Targets = append(j.Targets, start(t, engine.Client, image, j.Store, fmt.Sprintf("c%d", i), i%2 == 0, untilTerm(rates[i/2])))
	}
	defer helper(t, j)()
	for i, seen := 0, int64(0); i < 6; i++ {
		more := seen + 20_000
		require.Eventually(t, func() bool {
			seen = journalSize(t, j.Dir)
			return seen >= more
		}, 8*time.Minute, 10*time.Millisecond)
		if i%2 == 0 {
			engine.Kill9(t)
		} else {
			engine.Terminate(t)
		}
		engine.Start(t)
	}
	for _, tgt := range j.Targets {
		engine.Must(t, "POST", "/containers/"+tgt.ContainerID+"/kill?signal=TERM", nil)
	}
	for _, tgt := range j.Targets {
		requireWholeToEnd(t, engine.Client, j.Dir, tgt)
	}
}

// requireWholeToEnd waits until a journal has the last line of untilTerm, and requires
// that the journal equals the engine's log.
func requireWholeToEnd(t *testing.T, engine *enginetest.Client, dir string, tgt runtime.Target) {
	t.Helper()
	n := -1
	got := awaitJournal(t, dir, tgt.ID, func(got []string) bool {
		if len(got) == 0 {
			return false
		}
		_, err := fmt.Sscanf(got[len(got)-1], "end %d", &n)
		return err == nil
	})
	require.Positive(t, n, "%s has %d lines and no end", tgt.ID, len(got))
	kept := engineLog(t, engine, tgt)
	require.Equal(t, kept, got, tgt.ID)
	t.Logf("%s printed %d lines; the engine lost %d of them", tgt.ID, n, n+1-len(kept))
}

// engineLog returns all output of a container that the engine has.
func engineLog(t *testing.T, engine *enginetest.Client, tgt runtime.Target) []string {
	t.Helper()
	raw := engine.Must(t, "GET", "/containers/"+tgt.ContainerID+"/logs?stdout=1&stderr=1", nil)
	if tgt.TTY {
		return strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n"), "\n")
	}
	var text bytes.Buffer
	_, err := stdcopy.StdCopy(&text, &text, bytes.NewReader(raw))
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

func start(t *testing.T, engine *enginetest.Client, image, store, id string, tty bool, cmd []string) runtime.Target {
	t.Helper()
	return startLogging(t, engine, image, store, id, tty, map[string]string{"max-size": "20m", "max-file": "2"}, cmd)
}

// startLogging is start with the size and number of the engine's log files.
func startLogging(t *testing.T, engine *enginetest.Client, image, store, id string, tty bool, files map[string]string, cmd []string) runtime.Target {
	t.Helper()
	from := time.Now()
	containerID := engine.CreateRaw(t, "console-"+uuid.NewString(), map[string]any{
		"Image": image, "Cmd": cmd, "Tty": tty, "OpenStdin": true,
		"Labels": map[string]string{"io.berth.store": store, "io.berth.container": id, "io.berth.role": "server"},
		"HostConfig": map[string]any{
			"NetworkMode": "none", "Init": true,
			"LogConfig": map[string]any{"Type": "json-file", "Config": files},
		},
	})
	engine.Must(t, "POST", "/containers/"+containerID+"/start", nil)
	c, found := engine.Inspect(t, containerID)
	require.True(t, found)
	return runtime.Target{ID: id, Role: runtime.Server, ContainerID: containerID, StartedAt: c.State.StartedAt, TTY: tty, From: from}
}

// helper starts a berth process. kill sends it SIGKILL.
func helper(t *testing.T, j job) (kill func()) {
	t.Helper()
	text, err := json.Marshal(j)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperJob+"="+string(text))
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func journalSize(t *testing.T, dir string) (size int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*", "server-*.log"))
	require.NoError(t, err)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	return size
}

func allEnded(t *testing.T, engine *enginetest.Client, targets []runtime.Target) bool {
	t.Helper()
	for _, tgt := range targets {
		if c, found := engine.Inspect(t, tgt.ContainerID); found && c.State.Running {
			return false
		}
	}
	return true
}

// journal returns the lines of a console that another process writes.
func journal(t *testing.T, dir, id string) (list []string) {
	t.Helper()
	h := stream.New(dir, stream.Options{})
	require.NoError(t, h.Since(t.Context(), id, "server", time.Time{}, func(l v1.Line) bool {
		list = append(list, string(l.Data))
		return true
	}))
	return list
}
