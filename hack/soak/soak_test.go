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

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

const (
	maxMemory  = 256 << 10 // KiB of resident memory, at the peak
	maxHandles = 4096      // the daemon's limit of open files
	wait       = 2 * time.Minute
)

// round is the longest time of one attack. Before each the good tenant is measured
// alone, without and with restarts of the engine, so that the figures come from the same minutes of a noisy machine.
const round = 3 * time.Minute

// aloneStarts is how many starts are measured before each attack.
const aloneStarts = 15

// TestSoak measures the good tenant alone and under attack by turns, and compares
// the daemon's process before, during and after.
func TestSoak(t *testing.T) {
	duration, attacks := attackDuration(t), requireAttacks(t)
	engine := enginetest.StartIsolated(t)
	panel := startSlowPanel(t)
	b, sftp := startBerth(t, engine, panel)
	good := newGoodTenant(t, b, engine)
	evil := startHostileTenant(t, b, sftp, engine)
	victim := newVictim(t, b)
	before := readProcess(t, b.Pid())

	var p phases
	restarts, hostile, seen := 0, tally{}, uint64(0)
	for left := duration; left > 0; left -= round {
		rest(t, b)
		if compared() {
			p.alone = append(p.alone, good.rounds(t, aloneStarts)...)
			p.restarts = append(p.restarts, aloneWithRestarts(t, engine, good, min(left, round)/3)...)
		}
		_, seen = startsOf(t, b, "evil", seen)
		b.Verb(t, "evil", "start")
		ctx, cancel := context.WithTimeout(t.Context(), min(left, round))
		var others sync.WaitGroup
		others.Go(func() { restarts += restartEngine(ctx, t, engine, good) })
		others.Go(func() {
			n := attackFrom(ctx, t, evil)
			hostile.Requests, hostile.Refused = hostile.Requests+n.Requests, hostile.Refused+n.Refused
		})
		p.attack = append(p.attack, good.until(ctx, t)...)
		others.Wait()
		cancel()
		var during []period
		during, seen = startsOf(t, b, "evil", seen)
		p.hostile = append(p.hostile, during...)
	}
	peak := readProcess(t, b.Pid())

	good.roundTrip(t) // the good tenant's container still obeys
	victim.requireIntact(t)
	require.FileExists(t, filepath.Join(b.Data, "volumes", evil.Volume, "sent"), "the program that hides files has not run")
	t.Logf("attacks: %v", namesOf(attacks))
	t.Logf("attack of %s, %d engine restarts, %d hostile requests, %d of them refused", duration, restarts, hostile.Requests, hostile.Refused)
	if compared() {
		p.report(t)
	}
	t.Logf("resident memory at the peak %d MiB; handles %d before, %d at the end", peak.peakMemory>>10, before.handles, peak.handles)
	require.Positive(t, restarts)
	require.LessOrEqual(t, peak.peakMemory, maxMemory, "KiB of resident memory")
	berthtest.Until(t, wait, "the handles of the attack are closed", func() bool {
		return readProcess(t, b.Pid()).handles <= before.handles+32
	})
}

// aloneWithRestarts measures the good tenant while the engine restarts as in an attack: the
// first starts after a restart are slow for anybody.
func aloneWithRestarts(t *testing.T, engine *enginetest.Isolated, good *goodTenant, duration time.Duration) (l starts) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), max(duration, 2*engineUptime+time.Second))
	defer cancel()
	var host sync.WaitGroup
	host.Go(func() { restartEngine(ctx, t, engine, good) })
	l = good.until(ctx, t)
	host.Wait()
	return l
}

// compared reports whether the good tenant is measured alone too, for a person to compare. Otherwise
// nobody reads the figures.
func compared() bool { return os.Getenv("BERTH_SOAK") != "" }

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

// startBerth starts a daemon under the limits of hack/berth.service, made tighter, and returns its address of SFTP too.
func startBerth(t *testing.T, engine *enginetest.Isolated, panel string) (b *berthtest.Berth, sftp string) {
	t.Helper()
	port := berthtest.FreePort(t)
	b = berthtest.Prepare(t, berthtest.Options{
		Config: fmt.Sprintf("remote: {enabled: true, url: %q, token: %s}\nsftp: {enabled: true, host: 127.0.0.1, port: %d}\ndocker: {root_limit: 1GiB}",
			panel, berthtest.NewToken(), port),
		Limits: []string{fmt.Sprintf("--nofile=%d:%d", maxHandles, maxHandles)},
	})
	b.Engine = engine.Client
	b.Run(t)
	b.Ready(t)
	return b, fmt.Sprint("127.0.0.1:", port)
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
