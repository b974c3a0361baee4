package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

const lag = "berth_remote_lag_events"

func failures(reason string) string {
	return fmt.Sprintf("berth_remote_failures_total{reason=%q}", reason)
}

func TestPanelReceivesEveryTransition(t *testing.T) {
	t.Parallel()
	p := newPanel(t)
	b := berthtest.Start(t, berthtest.Options{Config: p.remote()})
	for _, id := range []string{"a", "b", "c"} {
		b.Create(t, id, berthtest.Spec{"power": "running", "install_script": "true", "startup_command": polite, "start_pattern": "up"})
	}
	for _, id := range []string{"a", "b", "c"} {
		b.State(t, id, "running")
	}
	b.Verb(t, "a", "stop")
	b.State(t, "a", "exit")
	b.Verb(t, "b", "kill")
	b.State(t, "b", "exit")
	b.Delete(t, "c")
	repeats := p.requireReceived(t, b)
	require.Zero(t, repeats, "nothing has failed")
	received := map[string][]string{}
	for _, e := range p.taken() {
		if e.Event == "event" {
			received[e.Container] = append(received[e.Container], e.Data)
		}
	}
	life := []string{"installing", "ready", "starting", "running"}
	require.Equal(t, append(life[:4:4], "stopping", "exit"), received["a"])
	require.Equal(t, append(life[:4:4], "exit"), without(received["b"], "stopping"))
	require.Equal(t, append(life[:4:4], "deleting"), without(received["c"], "stopping", "exit"))
	berthtest.Until(t, wait, "there is no lag", func() bool { return metric(t, b, lag) == 0 })
	t.Logf("%d transitions in %d requests", len(p.taken()), len(p.requests()))
}

func without(list []string, but ...string) (kept []string) {
	for _, one := range list {
		if !strings.Contains(" "+strings.Join(but, " ")+" ", " "+one+" ") {
			kept = append(kept, one)
		}
	}
	return kept
}

// TestPanelUnreachable: nothing listens at the panel's address, and the daemon is
// killed several times. When the panel listens again, it receives everything.
func TestPanelUnreachable(t *testing.T) {
	t.Parallel()
	p := newPanel(t)
	b := berthtest.Start(t, berthtest.Options{Config: p.remote()})
	b.Started(t, "mc", nil)
	p.requireReceived(t, b)
	p.shutDown()
	before := len(p.taken())
	for range rounds(2, 10) {
		b.Verb(t, "mc", "kill")
		b.State(t, "mc", "exit")
		b.Verb(t, "mc", "start")
		b.State(t, "mc", "running")
		b.Restart(t)
	}
	berthtest.Until(t, wait, "the failure is counted", func() bool { return metric(t, b, failures("unreachable")) > 0 })
	behind := metric(t, b, lag)
	require.GreaterOrEqual(t, behind, 6.0)
	require.Len(t, p.taken(), before)
	require.Contains(t, b.Log(), "the panel does not accept transitions")
	p.open(t)
	repeats := p.requireReceived(t, b)
	berthtest.Until(t, wait, "there is no lag", func() bool { return metric(t, b, lag) == 0 })
	berthtest.Until(t, wait, "that is logged", func() bool { return strings.Contains(b.Log(), "the panel accepts transitions again") })
	t.Logf("%.0f transitions behind, then none missing, %d repeated", behind, repeats)
}

// TestKillDuringDelivery: the panel accepts batches, and the daemon is
// killed before it stores that.
func TestKillDuringDelivery(t *testing.T) {
	t.Parallel()
	p := newPanel(t)
	p.delay = 50 * time.Millisecond
	b, random := berthtest.Start(t, berthtest.Options{Config: p.remote()}), dice(t)
	b.Started(t, "mc", berthtest.Spec{"startup_command": polite, "start_pattern": "up"})
	for range rounds(4, 40) {
		b.Verb(t, "mc", "restart")
		pause(time.Duration(random.IntN(800)) * time.Millisecond)
		b.Restart(t)
	}
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	t.Logf("%d transitions, %d of them repeated", len(history(t, b)), p.requireReceived(t, b))
}

// TestLostAnswerIsResent: the daemon is killed before it receives
// the answer to a batch. So it sends the batch again.
func TestLostAnswerIsResent(t *testing.T) {
	t.Parallel()
	p := newPanel(t)
	b := berthtest.Start(t, berthtest.Options{Config: p.remote()})
	p.answer(func(panelRequest) int { return -1 })
	b.Made(t, "mc", nil)
	berthtest.Until(t, wait, "a batch has come", func() bool { return len(p.requests()) > 0 })
	b.Kill9(t)
	p.answer(func(panelRequest) int { return 200 })
	b.Run(t)
	b.Ready(t)
	p.requireReceived(t, b)
	all := p.requests()
	require.Equal(t, all[0].events[0], all[1].events[0], "from where the first one began")
}

// TestPanelServerErrors: a batch that is answered with 5xx is retried, with
// growing pauses.
func TestPanelServerErrors(t *testing.T) {
	t.Parallel()
	p := newPanel(t)
	b := berthtest.Start(t, berthtest.Options{Config: p.remote()})
	const tries = 4
	p.answer(func(panelRequest) int {
		if len(p.all) < tries {
			return 500
		}
		return 200
	})
	b.Made(t, "mc", nil)
	p.requireReceived(t, b)
	all := p.requests()
	var waits []time.Duration
	for i := 1; i <= tries; i++ {
		require.Equal(t, 500, all[i-1].status)
		require.EqualValues(t, 1, all[i].events[0].Seq, "from the first again")
		waits = append(waits, all[i].at.Sub(all[i-1].at).Round(time.Millisecond))
	}
	require.Greater(t, waits[0], 400*time.Millisecond)
	require.Greater(t, waits[tries-1], waits[0]*3/2, "%v", waits)
	require.EqualValues(t, tries, metric(t, b, failures("server_error")))
	require.Zero(t, metric(t, b, "berth_remote_parked_total"))
	t.Logf("waits: %v", waits)
}

// TestPanelRefusesTransition: a transition that the panel refuses is
// parked and reported, and those after it are sent.
func TestPanelRefusesTransition(t *testing.T) {
	t.Parallel()
	p := newPanel(t)
	b := berthtest.Start(t, berthtest.Options{Config: p.remote()})
	p.answer(func(a panelRequest) int {
		for _, e := range a.events {
			if e.Seq == 2 {
				return 422
			}
		}
		return 200
	})
	b.Started(t, "mc", nil)
	p.requireReceived(t, b, 2)
	berthtest.Until(t, wait, "there is no lag", func() bool { return metric(t, b, lag) == 0 })
	require.EqualValues(t, 1, metric(t, b, "berth_remote_parked_total"))
	require.GreaterOrEqual(t, metric(t, b, failures("refused")), 1.0)
	var report string
	for line := range strings.Lines(b.Log()) {
		if strings.Contains(line, "the panel refused a transition") {
			require.Empty(t, report, "reported once")
			report = line
		}
	}
	for _, part := range []string{`"seq":2`, `"container":"mc"`, `"level":"ERROR"`, "HTTP 422"} {
		require.Contains(t, report, part)
	}
	require.EqualValues(t, 2, history(t, b)[1].Seq, "it stays in GET /events")
	tries := 0
	for _, a := range p.requests() {
		for _, e := range a.events {
			if e.Seq == 2 {
				tries++
			}
		}
	}
	require.Less(t, tries, 10, "the retries end")
	b.Restart(t)
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	p.requireReceived(t, b, 2)
}

// TestPanelHangs: a panel that does not answer delays nothing else.
func TestPanelHangs(t *testing.T) {
	t.Parallel()
	p := newPanel(t)
	b := berthtest.Start(t, berthtest.Options{Config: p.remote()})
	p.answer(func(panelRequest) int { return -1 })
	b.Made(t, "first", nil)
	berthtest.Until(t, wait, "a request hangs", func() bool { return len(p.requests()) > 0 })
	s := b.Listen(t, "/ws")
	b.Started(t, "mc", nil)
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	s.Event(t, 0, "mc", "exit")
	longest := time.Duration(0)
	for range 100 {
		began := time.Now()
		b.Must(t, "GET", "/containers/mc", nil)
		b.Port(t)
		longest = max(longest, time.Since(began))
	}
	require.Less(t, longest, 15*time.Second, "a commit may wait for a busy disk; for the panel it would wait 30 s")
	require.GreaterOrEqual(t, metric(t, b, lag), 6.0)
	took, code := b.Term(t)
	require.Zero(t, code)
	require.Less(t, took, 20*time.Second)
	p.answer(func(panelRequest) int { return 200 })
	b.Run(t)
	b.Ready(t)
	p.requireReceived(t, b)
	t.Logf("longest pair of requests %s, ended after %s", longest.Round(time.Millisecond), took.Round(time.Millisecond))
}

// TestPanelChangedByReload: a panel that a reload enables receives all
// transitions, and none while remote is disabled.
func TestPanelChangedByReload(t *testing.T) {
	t.Parallel()
	p := newPanel(t)
	on := p.remote()
	off := strings.Replace(on, "enabled: true", "enabled: false", 1)
	b := berthtest.Start(t, berthtest.Options{Config: off})
	b.Started(t, "mc", nil)
	require.Zero(t, metric(t, b, lag), "no lag without a panel")
	require.Empty(t, p.requests())

	reload(t, b, off, on)
	p.requireReceived(t, b)
	reload(t, b, on, off)
	// A request may be in flight; the controller reads the settings every second.
	b.Verb(t, "mc", "kill")
	b.State(t, "mc", "exit")
	b.Verb(t, "mc", "start")
	b.State(t, "mc", "running")
	require.Less(t, len(p.taken()), len(history(t, b)), "the panel receives no more")

	other := newPanel(t)
	other.token = berthtest.NewToken()
	reload(t, b, off, other.remote())
	berthtest.Until(t, wait, "the other panel gets the rest", func() bool {
		got := other.taken()
		return len(got) > 0 && got[len(got)-1].Seq == uint64(len(history(t, b)))
	})
	require.Equal(t, p.taken()[len(p.taken())-1].Seq+1, other.taken()[0].Seq, "from where the first one was left")
	require.Equal(t, "Bearer "+other.token, other.requests()[0].token)
}
