package soak_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/berthtest"
	"berth/hack/enginetest"
)

const (
	maxMemory  = 256 << 10 // KiB of resident memory, at the peak
	maxHandles = 4096      // the daemon's limit of open files
	wait       = 2 * time.Minute
)

// round is the longest time of one attack. Before each the good tenant is measured
// alone, so that both figures come from the same minutes of a noisy machine.
const round = 3 * time.Minute

// aloneStarts is how many starts are measured before each attack.
const aloneStarts = 15

// TestSoak measures the good tenant alone and under attack by turns, and compares
// the daemon's process before, during and after.
func TestSoak(t *testing.T) {
	duration := attackDuration(t)
	engine := enginetest.StartIsolated(t)
	panel := startSlowPanel(t)
	b := startBerth(t, engine, panel)
	good := newGoodTenant(t, b, engine)
	evil := startHostileTenant(t, b, engine)
	victim := newVictim(t, b)
	before := readProcess(t, b.Pid())

	var alone, under latencies
	restarts, hostile := 0, tally{}
	for left := duration; left > 0; left -= round {
		rest(t, b)
		alone = append(alone, good.rounds(t, aloneStarts)...)
		b.Verb(t, "evil", "start")
		ctx, cancel := context.WithTimeout(t.Context(), min(left, round))
		var others sync.WaitGroup
		others.Go(func() { restarts += restartEngine(ctx, t, engine, good) })
		others.Go(func() {
			n := attackFrom(ctx, t, evil)
			hostile.Requests, hostile.Refused = hostile.Requests+n.Requests, hostile.Refused+n.Refused
		})
		under = append(under, good.until(ctx, t)...)
		others.Wait()
		cancel()
	}
	peak := readProcess(t, b.Pid())

	good.roundTrip(t) // the good tenant's container still obeys
	victim.requireIntact(t)
	t.Logf("attack of %s, %d engine restarts, %d hostile requests, %d of them refused", duration, restarts, hostile.Requests, hostile.Refused)
	t.Logf("start of the good tenant: alone %s; under attack %s; p99 ratio %.2f", alone, under, under.ratio(alone))
	t.Logf("resident memory at the peak %d MiB; handles %d before, %d at the end", peak.peakMemory>>10, before.handles, peak.handles)
	require.Positive(t, restarts)
	require.LessOrEqual(t, peak.peakMemory, maxMemory, "KiB of resident memory")
	berthtest.Until(t, wait, "the handles of the attack are closed", func() bool {
		return readProcess(t, b.Pid()).handles <= before.handles+32
	})
}

func attackDuration(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("BERTH_SOAK")
	if text == "" {
		return 40 * time.Second
	}
	duration, err := time.ParseDuration(text)
	require.NoError(t, err, "BERTH_SOAK")
	return duration
}

// startBerth starts a daemon under the limits of hack/berth.service, made tighter.
func startBerth(t *testing.T, engine *enginetest.Isolated, panel string) *berthtest.Berth {
	t.Helper()
	b := berthtest.Prepare(t, berthtest.Options{
		Config: fmt.Sprintf("remote: {enabled: true, url: %q, token: %s}", panel, berthtest.NewToken()),
		Limits: []string{fmt.Sprintf("--nofile=%d:%d", maxHandles, maxHandles)},
	})
	b.Engine = engine.Client
	b.Run(t)
	b.Ready(t)
	return b
}

// victim is a volume of somebody else, whose files nobody may touch.
type victim struct{ path string }

const victimText = "a world that took years to build"

func newVictim(t *testing.T, b *berthtest.Berth) victim {
	t.Helper()
	var v struct{ Path string }
	b.Post(t, "/volumes", nil).Decode(t, &v)
	b.Post(t, "/volumes/"+filepath.Base(v.Path)+"/files", map[string]string{"path": "worlds/level.dat", "content": victimText})
	return victim{filepath.Join(v.Path, "worlds/level.dat")}
}

func (v victim) requireIntact(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(v.path)
	require.NoError(t, err)
	require.Equal(t, victimText, string(text))
}

// process is what the kernel reports of the daemon.
type process struct {
	peakMemory int // KiB, VmHWM
	handles    int
}

func readProcess(t *testing.T, pid int) (p process) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err, "the daemon has exited")
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	require.True(t, found)
	_, err = fmt.Sscan(rest, &p.peakMemory)
	require.NoError(t, err)
	handles, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	p.handles = len(handles)
	return p
}
