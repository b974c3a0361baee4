package model_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

const (
	wait        = 2 * time.Minute
	clients     = 4
	gamesOfEach = 2
	portsOfEach = 4
)

// world is the daemon with its clients.
type world struct {
	t       *testing.T
	b       *berthtest.Berth
	image   string
	missing string // an image that its registry does not have
	ports   []int
	clients []*client
	events  *history

	lives atomic.Int64 // odd from just before a kill until the process is dead
	gate  sync.RWMutex // clients hold it for reading during a step; a complete check holds it alone
	ended atomic.Bool  // clients begin no step any more

	sending chan struct{} // receives when a client sends a request that changes something
}

// number returns the number that an environment variable sets, or else n.
func number(t *testing.T, variable string, n uint64) uint64 {
	t.Helper()
	if text := os.Getenv(variable); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		n = given
	}
	t.Logf("%s=%d", variable, n)
	return n
}

func TestModel(t *testing.T) {
	kills, burst := 10, 10 // between two complete checks
	if os.Getenv("BERTH_LONG") != "" {
		kills, burst = 900, 25
	}
	kills = int(number(t, "BERTH_MODEL_KILLS", uint64(kills)))
	seed := number(t, "BERTH_MODEL_SEED", uint64(time.Now().UnixNano()))
	w := newWorld(t, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var all sync.WaitGroup
	all.Go(w.events.follow)
	for _, c := range w.clients {
		all.Go(c.run)
	}
	stop := sync.OnceFunc(func() { w.ended.Store(true); all.Wait() })
	defer stop()
	began := time.Now()
	for done := 0; done < kills && !t.Failed(); done++ {
		w.kill(random)
		if (done+1)%burst == 0 || done+1 == kills {
			w.check()
			t.Logf("%d kills, %d requests in %s", done+1, w.count(), time.Since(began).Round(time.Second))
		}
	}
	stop()
	if !t.Failed() {
		w.finish()
	}
	w.report(kills)
}

// newWorld starts the daemon, and adds the ports that all clients contend for.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	registry := enginetest.StartRegistry(t)
	w := &world{t: t, b: berthtest.Start(t, berthtest.Options{}), image: berthtest.Busybox(t), missing: registry.Addr + "/missing:1",
		sending: make(chan struct{})}
	w.events = &history{world: w, games: map[string]*life{}}
	for n := range clients {
		c := &client{world: w, n: n, random: rand.New(rand.NewPCG(seed, uint64(n+1))), counts: map[string]int{}}
		for i := range gamesOfEach {
			c.games = append(c.games, newGame(c, fmt.Sprintf("c%d-g%d", n, i)))
		}
		for range portsOfEach {
			w.ports = append(w.ports, w.b.Port(t).Port)
		}
		c.port = register{name: "port", possible: []int{0}}
		c.portNumber = berthtest.FreePort(t)
		w.clients = append(w.clients, c)
	}
	return w
}

// kill kills the daemon at a random moment, often while it carries out a request or during its start, and starts it
// again.
func (w *world) kill(random *rand.Rand) {
	most := 2000
	if random.IntN(2) == 0 {
		most = 300
	}
	moment := time.After(time.Duration(random.IntN(most)) * time.Millisecond) // the input of the test
	<-moment
	if random.IntN(2) == 0 {
		after := time.Duration(random.IntN(15)) * time.Millisecond
		select {
		case <-w.sending:
			time.Sleep(after) // as above
		case <-time.After(time.Second):
		}
	}
	w.lives.Add(1)
	w.b.Kill9(w.t)
	w.lives.Add(1)
	w.b.Run(w.t)
	if random.IntN(4) > 0 {
		w.b.Answers(w.t, "/healthz")
	}
}

// check stops the clients, waits until the daemon has done what was requested, and compares everything.
func (w *world) check() {
	w.b.Ready(w.t)
	w.gate.Lock()
	defer w.gate.Unlock()
	w.b.Ready(w.t)
	for _, c := range w.clients {
		for _, g := range c.games {
			g.settle()
		}
		c.checkObjects()
	}
	w.checkLists()
	w.events.check()
}

// violated fails the test with what contradicts the model.
func (w *world) violated(c *client, format string, args ...any) {
	trace := ""
	if c != nil {
		trace = "\nthe last requests of this client:\n" + c.trace()
	}
	w.t.Errorf("violation: "+format+trace, args...)
}

// finish deletes everything, and requires that nothing is left, also after one more kill.
func (w *world) finish() {
	for _, c := range w.clients {
		c.removeAll()
	}
	w.checkLists()
	w.b.Restart(w.t)
	w.checkLists()
	w.checkNothingLeft()
	w.events.compareAll()
}

// checkNothingLeft checks the engine and the disk. A container that a killed daemon had requested, and that the
// engine created later, never ran, and is removed after a grace period.
func (w *world) checkNothingLeft() {
	for _, c := range w.b.Containers(w.t, "") {
		id := c.Labels["io.berth.container"]
		if one, found := w.b.Engine.Inspect(w.t, c.ID); found && (c.State != "created" || !one.State.StartedAt.IsZero()) {
			w.violated(nil, "the engine has container %s of %s (%s)", c.ID, id, c.State)
		}
	}
	for _, folder := range []string{"volumes", "backups", "console"} {
		var left []string
		if !berthtest.Within(wait, func() bool { left = filesBelow(w.t, filepath.Join(w.b.Data, folder)); return len(left) == 0 }) {
			w.violated(nil, "%s of the data directory has %q", folder, left)
		}
	}
}

// filesBelow returns the entries of a folder that hold something: files, and folders of one level that have a name
// of an object.
func filesBelow(t *testing.T, root string) (left []string) {
	t.Helper()
	entries, err := os.ReadDir(root)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() == ".keeper" { // the program that every container has as its first process
			continue
		}
		if e.IsDir() && e.Name()[0] == '.' {
			left = append(left, filesBelow(t, filepath.Join(root, e.Name()))...)
			continue
		}
		left = append(left, filepath.Join(root, e.Name()))
	}
	return left
}

func (w *world) count() (n int) {
	for _, c := range w.clients {
		n += int(c.requests.Load())
	}
	return n
}

func (w *world) report(kills int) {
	total := map[string]int{}
	for _, c := range w.clients {
		for name, n := range c.counts {
			total[name] += n
		}
	}
	w.t.Logf("%d kills: %v; %d transitions", kills, total, w.events.newest)
}
