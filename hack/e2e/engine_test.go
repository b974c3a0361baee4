package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// engineFaults are the faults of an engine or of a proxy before it. Each is
// injected while five requests are sent, and then ended.
var engineFaults = []struct {
	name  string
	fault enginetest.Fault
	hits  func(*http.Request) bool
}{
	{"resets", enginetest.Reset, enginetest.All},
	{"is slow", enginetest.Delay, enginetest.All},
	{"hangs", enginetest.Hang, enginetest.All},
	{"hangs at starts", enginetest.Hang, enginetest.Act("/start")},
	{"answers 500", enginetest.Answer(500, "application/json", `{"message":"no"}`), enginetest.All},
	{"answers 404", enginetest.Answer(404, "text/plain", "404 page not found"), enginetest.All},
	{"answers garbage", enginetest.Answer(200, "text/html", "\x00<html>"), enginetest.All},
	{"answers an object", enginetest.Answer(200, "application/json", "{}"), enginetest.All},
	{"refuses what changes", enginetest.Answer(500, "application/json", `{"message":"no"}`), enginetest.Act("POST", "DELETE")},
	{"loses the answers of creations", enginetest.Lose, enginetest.Act("/create")},
	{"loses the answers of starts", enginetest.Lose, enginetest.Act("/start")},
	{"loses the answers of kills", enginetest.Lose, enginetest.Act("/kill")},
	{"loses the answers of removals", enginetest.Lose, enginetest.Act("DELETE")},
}

// TestEngineFaults: whatever the engine answers, no request is refused,
// lost or executed twice, and no running container is reported as exited.
func TestEngineFaults(t *testing.T) {
	t.Parallel()
	b := berthtest.Prepare(t, berthtest.Options{Config: "reconcile: {create_wait: 100ms, resync: 1s, backoff: {max: 2s}}"})
	proxy := enginetest.StartProxy(t, b.Engine)
	b.Env("DOCKER_HOST=" + proxy.Host())
	b.Run(t)
	b.Ready(t)
	s := b.Listen(t, "/ws")
	b.Started(t, "bystander", nil)
	before := b.Processes(t)["bystander"]
	for i, m := range engineFaults {
		w := newRequestSet(t, b, i)
		proxy.Inject(m.fault, m.hits)
		w.send(t, b)
		berthtest.Until(t, wait, "the engine "+m.name, func() bool { return proxy.Injected() > 0 })
		pause(1500 * time.Millisecond) // for the effects of the fault and a resync
		w.requireNoFalseExit(t, b)
		injected := proxy.Clear()
		cleared := time.Now()
		w.check(t, b)
		t.Logf("the engine %s: %d times; the desired state was reached %s later", m.name, injected, time.Since(cleared).Round(time.Millisecond))
		require.Equal(t, before, b.Processes(t)["bystander"], m.name)
	}
	require.Equal(t, []string{"installing", "ready", "starting", "running"}, s.States("bystander"))
	checkNumbers(t, b, s)
}

// requestSet is one request of each verb, and a creation.
type requestSet struct {
	created, started, killed, restarted, deleted string

	before map[string]string // processes before the requests
}

func newRequestSet(t *testing.T, b *berthtest.Berth, i int) *requestSet {
	t.Helper()
	id := func(what string) string { return fmt.Sprintf("%s-%d", what, i) }
	w := &requestSet{created: id("create"), started: id("start"), killed: id("kill"), restarted: id("restart"), deleted: id("delete")}
	b.Made(t, w.started, nil)
	for _, running := range []string{w.killed, w.restarted, w.deleted} {
		b.Started(t, running, nil)
	}
	w.before = b.Processes(t)
	return w
}

// send sends the requests. berth accepts all of them.
func (w *requestSet) send(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	b.Verb(t, w.started, "start")
	b.Verb(t, w.killed, "kill")
	b.Verb(t, w.restarted, "restart")
	b.Must(t, "DELETE", "/containers/"+w.deleted, nil)
	b.Create(t, w.created, berthtest.Spec{"power": "running"})
}

// requireNoFalseExit requires that berth reports no running container as exited.
func (w *requestSet) requireNoFalseExit(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	var list struct{ Containers []berthtest.Container }
	b.Get(t, "/containers", &list)
	reported := map[string]string{}
	for _, c := range list.Containers {
		reported[c.InternalID] = string(c.State)
	}
	alive := b.Processes(t)
	for id, process := range w.before {
		if alive[id] == process {
			require.Contains(t, []string{"running", "stopping", "deleting"}, reported[id], id)
		}
	}
}

// check waits until each request was executed, exactly once, and cleans up.
func (w *requestSet) check(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	b.Gone(t, w.deleted)
	b.State(t, w.killed, "exit")
	b.State(t, w.started, "running")
	b.State(t, w.created, "running")
	b.Await(t, w.restarted, "another run", func(c berthtest.Container) bool {
		now := b.Processes(t)[w.restarted]
		return c.State == "running" && now != "" && now != w.before[w.restarted]
	})
	for _, id := range []string{w.killed, w.started, w.created, w.restarted} {
		require.True(t, onlyServer(t, b, id), id)
		b.Delete(t, id)
	}
}

// TestEngineIsKilled kills and terminates the engine while berth accepts
// requests. With live-restore containers keep running and berth touches none;
// without it they exit with the engine and are started again.
func TestEngineIsKilled(t *testing.T) {
	t.Parallel()
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprintf("live-restore=%t", live), func(t *testing.T) {
			t.Parallel()
			var options []string
			if live {
				options = []string{"--live-restore"}
			}
			engine := enginetest.StartIsolated(t, options...)
			b := berthOn(t, engine)
			n := rounds(10, 50)
			for i := range n {
				b.Create(t, fmt.Sprintf("m%02d", i), berthtest.Spec{"image": engine.Busybox(t), "power": "running"})
			}
			berthtest.Until(t, 2*wait, "all run", func() bool { return countRunning(t, b) == n })
			for round := range rounds(2, 6) {
				outage(t, b, engine, live, n, round)
			}
		})
	}
}

// berthOn starts a berth on an isolated engine.
func berthOn(t *testing.T, engine *enginetest.Isolated) *berthtest.Berth {
	t.Helper()
	return berthtest.Start(t, berthtest.Options{Engine: engine.Client})
}

// outage ends the engine and starts it again.
func outage(t *testing.T, b *berthtest.Berth, engine *enginetest.Isolated, live bool, n, round int) {
	t.Helper()
	before, body := b.Processes(t), b.Body(t, fmt.Sprintf("late-%d", round), berthtest.Spec{"image": engine.Busybox(t), "power": "running"})
	late := fmt.Sprintf("late-%d", round)
	if round%2 == 0 {
		engine.Kill9(t)
	} else {
		engine.Terminate(t)
	}
	b.Post(t, "/containers", body)
	berthtest.Until(t, wait, "GET /readyz reports the outage", func() bool {
		return strings.Contains(string(b.Do(t, "GET", "/readyz", nil).Body), "engine: does not answer")
	})
	engine.Start(t)
	began := time.Now()
	b.State(t, late, "running")
	berthtest.Until(t, 2*wait, "all run", func() bool { return countRunning(t, b) == n+1 && len(b.Processes(t)) == n+1 })
	t.Logf("round %d: all run %s after the engine was back", round, time.Since(began).Round(time.Millisecond))
	b.Delete(t, late)
	after := b.Processes(t)
	for id := range before {
		require.True(t, onlyServer(t, b, id), id)
		require.Equal(t, live, before[id] == after[id], id)
	}
}

// TestEngineFreezes: while containerd hangs, the engine answers pings and
// lists. berth reports that it is not ready, answers, and accepts requests.
func TestEngineFreezes(t *testing.T) {
	t.Parallel()
	engine := enginetest.StartIsolated(t)
	b := berthOn(t, engine)
	b.Started(t, "mc", berthtest.Spec{"image": engine.Busybox(t)})
	before := b.Processes(t)
	engine.FreezeContainerd(t)
	b.Verb(t, "mc", "kill")
	began := time.Now()
	berthtest.Until(t, 2*wait, "GET /readyz reports the freeze", func() bool { return b.Do(t, "GET", "/readyz", nil).Status == 503 })
	t.Logf("not ready %s after the freeze", time.Since(began).Round(time.Millisecond))
	require.NotEqual(t, v1.Exit, b.Container(t, "mc").State, "no exit was observed")
	b.Verb(t, "mc", "start")
	engine.Thaw(t)
	began = time.Now()
	b.Ready(t)
	b.Await(t, "mc", "another run", func(c berthtest.Container) bool {
		now := b.Processes(t)["mc"]
		return c.State == "running" && now != "" && now != before["mc"]
	})
	t.Logf("the desired state was reached %s after the thaw", time.Since(began).Round(time.Millisecond))
	require.True(t, onlyServer(t, b, "mc"))
}
