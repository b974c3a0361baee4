//go:build cluster

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"

	"berth/hack/test/enginetest"
	"berth/runtime"
)

// TestLoss cuts links, ends nodes at once, boots and removes them, under containers that write
// to their volumes all the time. Each is done BERTH_LOSS_ROUNDS times (1).
func TestLoss(t *testing.T) {
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("BERTH_LOSS_ROUNDS"), "1"))
	require.NoError(t, err)
	l := startLoss(t)
	for round := range rounds {
		for _, test := range []struct {
			name string
			run  func(*testing.T, *loss)
		}{
			{"cut link", testCutLink},
			{"power cut", testPowerCut},
			{"power cut, fenced later", testPowerCutFencedLater},
			{"boot", testBoot},
			{"node removed", testNodeRemoved},
		} {
			if !t.Run(fmt.Sprintf("%s %d", test.name, round+1), func(t *testing.T) { test.run(t, l) }) {
				return
			}
		}
	}
	for what, times := range l.times {
		slices.Sort(times)
		t.Logf("%s: %d containers, median %s, longest %s", what, len(times), times[len(times)/2], times[len(times)-1])
	}
}

// loss is a cluster with writers, and what the test knows of them.
type loss struct {
	cluster
	writers []*writer
	times   map[string][]time.Duration // from a fence to the first stamp of the next run

	mu      sync.Mutex     // guards the rest
	reports map[string]int // the last stamp that was reported, by the run
}

// writer is a container that writes, with what was observed last.
type writer struct {
	name   runtime.Name
	volume string
	wake   chan struct{}

	mu     sync.Mutex    // guards the rest
	state  runtime.State // the last one
	end    runtime.State // the last one without a run
	lost   bool
	starts int
}

func startLoss(t *testing.T) *loss {
	t.Helper()
	l := &loss{cluster: newCluster(t), times: map[string][]time.Duration{}, reports: map[string]int{}}
	image := push(t, enginetest.StartRegistryAt(t, l.host+":5000", "", ""), "loss:1")
	require.NoError(t, l.Pull(t.Context(), image, runtime.Auth{}, nil))
	program := filepath.Join(t.TempDir(), "writer")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./testdata/writer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	report := l.listen(t)
	for i := range 3 {
		w := &writer{name: runtime.Name{ID: fmt.Sprint("writer", i), Role: runtime.Server}, wake: make(chan struct{}, 1)}
		w.volume = filepath.Join(l.cfg.Volumes, w.name.ID)
		require.NoError(t, os.Mkdir(w.volume, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(w.volume, "writer"), text, 0o755))
		_, err := l.Create(t.Context(), runtime.Spec{
			Name: w.name, SpecHash: "1", Image: image, Mounts: []runtime.Mount{{Source: w.volume, Target: "/home/container"}},
			Command: []string{"/home/container/writer", "/home/container/stamps", report},
		})
		require.NoError(t, err)
		l.writers = append(l.writers, w)
	}
	l.control(t)
	for _, w := range l.writers {
		l.awaitWriting(t, w, "")
	}
	return l
}

// listen records what the writers report.
func (l *loss) listen(t *testing.T) (addr string) {
	t.Helper()
	from, err := net.ListenPacket("udp", l.host+":0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = from.Close() })
	go func() {
		stamp := make([]byte, 100)
		for {
			n, _, err := from.ReadFrom(stamp)
			if err != nil {
				return
			}
			run, number, _ := strings.Cut(string(stamp[:n]), " ")
			last, _ := strconv.Atoi(number)
			l.mu.Lock()
			l.reports[run] = max(l.reports[run], last)
			l.mu.Unlock()
		}
	}()
	return from.LocalAddr().String()
}

// control does what the controller of containers does: it starts what does not run, and nothing
// while a machine does not answer.
func (l *loss) control(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for _, w := range l.writers {
		all.Go(func() {
			for ctx.Err() == nil {
				again := time.After(time.Minute)
				if err := l.step(ctx, w); err != nil {
					again = time.After(200 * time.Millisecond)
				}
				select {
				case <-w.wake:
				case <-again:
				case <-ctx.Done():
				}
			}
		})
	}
	wake := func(n runtime.Name) {
		for _, w := range l.writers {
			if w.name == n {
				select {
				case w.wake <- struct{}{}:
				default:
				}
			}
		}
	}
	all.Go(func() {
		for ctx.Err() == nil {
			_ = l.Watch(ctx, func(list []runtime.Found) {
				for _, one := range list {
					wake(one.Name)
				}
			}, wake)
		}
	})
}

func (l *loss) step(ctx context.Context, w *writer) error {
	s, err := l.Inspect(ctx, w.name)
	w.mu.Lock()
	w.lost = errors.Is(err, runtime.ErrLost)
	if err == nil {
		w.state = s
		if !s.Running && !s.Starting {
			w.end = s
		}
	}
	lost := w.lost
	w.mu.Unlock()
	if err != nil || s.Running {
		if lost {
			return nil
		}
		return err
	}
	err = l.Start(ctx, w.name)
	if !s.Starting && (err == nil || errors.Is(err, runtime.ErrStarting)) {
		w.mu.Lock()
		w.starts++
		w.mu.Unlock()
	}
	if err == nil {
		s, err = l.Inspect(ctx, w.name)
	}
	if err == nil {
		w.mu.Lock()
		w.state = s
		w.mu.Unlock()
	}
	return err
}

// seen returns what was observed last.
func (w *writer) seen() (s, end runtime.State, lost bool, starts int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.end, w.lost, w.starts
}

// stamps returns the runs that wrote to a volume, in order, with their last stamps. It requires
// that no run wrote after the next one began, and that none left one out.
func (w *writer) stamps(t *testing.T) (runs []string, last map[string]int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.volume, "stamps"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	require.NoError(t, err)
	last = map[string]int{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		run, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.Atoi(number)
		require.NoError(t, err, line)
		if len(runs) == 0 || runs[len(runs)-1] != run {
			require.Zero(t, last[run], "two writers")
			runs = append(runs, run)
		}
		if last[run]+1 != n {
			require.Equal(t, last[run]+1, n, "a stamp is lost")
		}
		last[run] = n
	}
	return runs, last
}

// run returns the id of the run that wrote to a volume last; empty: none.
func (w *writer) run(t *testing.T) string {
	t.Helper()
	f, err := os.Open(filepath.Join(w.volume, "stamps"))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	end := make([]byte, 200) // a few lines
	n, err := f.ReadAt(end, max(0, info.Size()-int64(len(end))))
	if err != nil && !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
	lines := strings.Split(string(end[:n]), "\n")
	if len(lines) < 2 {
		return ""
	}
	run, _, _ := strings.Cut(lines[len(lines)-2], " ")
	return run
}

// awaitWriting waits for the first stamps of a run after another one.
func (l *loss) awaitWriting(t *testing.T, w *writer, before string) {
	t.Helper()
	enginetest.Until(t, 2*time.Minute, "the stamps of "+w.name.ID, func() bool { return w.run(t) != before })
}

// check requires that each stamp that was reported is there.
func (l *loss) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	reported := map[string]int{}
	for run, n := range l.reports {
		reported[run] = n
	}
	l.mu.Unlock()
	known := 0
	for _, w := range l.writers {
		runs, last := w.stamps(t)
		for _, run := range runs {
			require.GreaterOrEqual(t, last[run], reported[run], "stamps of %s are lost", w.name.ID)
			if reported[run] > 0 {
				known++
			}
		}
	}
	require.Equal(t, len(reported), known, "a whole run is lost")
	require.GreaterOrEqual(t, known, len(l.writers))
}

// victim returns the node of the first writer, and the writers on it.
func (l *loss) victim(t *testing.T) (node string, on []*writer) {
	t.Helper()
	node = l.pod(t, l.writers[0].name).Spec.NodeName
	for _, w := range l.writers {
		if l.pod(t, w.name).Spec.NodeName == node {
			on = append(on, w)
		}
	}
	return node, on
}

// kube has hack/kube do something to a node.
func kube(t *testing.T, what, how, node string) {
	t.Helper()
	out, err := exec.Command("../../hack/kube/kube.sh", what, how, strings.TrimPrefix(node, "n")).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func (l *loss) node(t *testing.T, name string) *core1.Node {
	t.Helper()
	node := &core1.Node{}
	require.NoError(t, l.admin.client.Get().Resource("nodes").Name(name).Do(t.Context()).Into(node))
	return node
}

// taint adds the taint of a node that is off, or removes it.
func (l *loss) taint(t *testing.T, name string, off bool) {
	t.Helper()
	enginetest.Until(t, time.Minute, "the taint of a node", func() bool {
		node := l.node(t, name)
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t core1.Taint) bool { return t.Key == core1.TaintNodeOutOfService })
		if off {
			node.Spec.Taints = append(node.Spec.Taints, core1.Taint{Key: core1.TaintNodeOutOfService, Value: "off", Effect: core1.TaintEffectNoExecute})
		}
		return l.admin.client.Put().Resource("nodes").Name(name).Body(node).Do(t.Context()).Error() == nil
	})
}

func (l *loss) awaitReady(t *testing.T, name string) {
	t.Helper()
	enginetest.Until(t, 2*time.Minute, "node "+name, func() bool {
		node := &core1.Node{}
		err := l.admin.client.Get().Resource("nodes").Name(name).Do(t.Context()).Into(node)
		return err == nil && reachOf(node) == nodeReady && !slices.ContainsFunc(node.Spec.Taints, func(t core1.Taint) bool { return t.Effect == core1.TaintEffectNoSchedule })
	})
}

func (l *loss) awaitLost(t *testing.T, list []*writer, want bool) {
	t.Helper()
	enginetest.Until(t, time.Minute, fmt.Sprint("writers that are lost: ", want), func() bool {
		for _, w := range list {
			if _, _, lost, _ := w.seen(); lost != want {
				return false
			}
		}
		return true
	})
}

// testCutLink: the containers run on, so nothing may be done to them.
func testCutLink(t *testing.T, l *loss) {
	node, on := l.victim(t)
	type facts struct {
		state   runtime.State
		starts  int
		run     string
		pod, id string
	}
	get := func(w *writer) (f facts) {
		f.state, _, _, f.starts = w.seen()
		pod := l.pod(t, w.name)
		f.run, f.pod, f.id = w.run(t), string(pod.UID), pod.Status.ContainerStatuses[0].ContainerID
		return f
	}
	before := map[*writer]facts{}
	for _, w := range l.writers {
		before[w] = get(w)
	}
	kube(t, "link", "down", node)
	l.awaitLost(t, on, true)
	n := on[0].name
	require.ErrorIs(t, l.Signal(t.Context(), n, "SIGTERM"), runtime.ErrLost)
	require.ErrorIs(t, l.Kill(t.Context(), n), runtime.ErrLost)
	require.ErrorIs(t, l.Remove(t.Context(), n), runtime.ErrLost)
	require.ErrorIs(t, l.Start(t.Context(), n), runtime.ErrLost)
	require.ErrorIs(t, l.Input(t.Context(), before[on[0]].state.ContainerID, []byte("x")), runtime.ErrLost)
	s, err := l.Inspect(t.Context(), n)
	require.ErrorIs(t, err, runtime.ErrLost)
	require.Equal(t, before[on[0]].state, s, "the last state that is known")
	time.Sleep(10 * time.Second)
	l.awaitLost(t, on, true)
	kube(t, "link", "up", node)
	l.awaitLost(t, l.writers, false)
	l.awaitReady(t, node)
	time.Sleep(3 * time.Second)
	for w, was := range before {
		require.Equal(t, was, get(w), w.name.ID)
		_, had := w.stamps(t)
		time.Sleep(100 * time.Millisecond)
		_, has := w.stamps(t)
		require.Greater(t, has[was.run], had[was.run], "it runs on")
	}
	l.check(t)
}

// testPowerCut fences a node as soon as it is off: the cluster still takes 10 s to find that out.
func testPowerCut(t *testing.T, l *loss) {
	l.lose(t, "from the power cut and its taint", 25*time.Second, func(node string, _ []*writer) {
		kube(t, "power", "off", node)
		l.taint(t, node, true)
	}, func(node string) { kube(t, "power", "on", node); l.awaitReady(t, node); l.taint(t, node, false) })
}

// testPowerCutFencedLater fences a node that was found to be off.
func testPowerCutFencedLater(t *testing.T, l *loss) {
	l.lose(t, "from the taint of a node that does not answer", 15*time.Second, func(node string, on []*writer) {
		kube(t, "power", "off", node)
		l.awaitLost(t, on, true)
		time.Sleep(3 * time.Second)
		l.awaitLost(t, on, true)
		l.taint(t, node, true)
	}, func(node string) { kube(t, "power", "on", node); l.awaitReady(t, node); l.taint(t, node, false) })
}

func testNodeRemoved(t *testing.T, l *loss) {
	l.lose(t, "from the removal of a node", 15*time.Second, func(node string, _ []*writer) {
		kube(t, "power", "off", node)
		require.NoError(t, l.admin.client.Delete().Resource("nodes").Name(node).Do(t.Context()).Error())
	}, func(node string) { kube(t, "power", "on", node) })
}

// testBoot: the containers ended with their node, and start again once it answers.
func testBoot(t *testing.T, l *loss) {
	l.lose(t, "from a boot", time.Minute, func(node string, _ []*writer) {
		kube(t, "power", "off", node)
		kube(t, "power", "on", node)
	}, func(string) {})
}

// lose ends a node, and requires that each of its containers runs again within a limit, and that
// the others are not disturbed.
func (l *loss) lose(t *testing.T, what string, limit time.Duration, end func(node string, on []*writer), restore func(node string)) {
	t.Helper()
	node, on := l.victim(t)
	runs, starts, many := map[*writer]string{}, map[*writer]int{}, map[*writer]int{}
	for _, w := range l.writers {
		runs[w] = w.run(t)
		all, _ := w.stamps(t)
		many[w] = len(all)
		_, _, _, starts[w] = w.seen()
	}
	end(node, on)
	fenced := time.Now()
	for _, w := range on {
		l.awaitWriting(t, w, runs[w])
		took := time.Since(fenced)
		t.Logf("%s: %s after %s", what, w.name.ID, took.Round(10*time.Millisecond))
		l.times[what] = append(l.times[what], took.Round(10*time.Millisecond))
		require.Less(t, took, limit)
		if what != "from a boot" {
			require.NotEqual(t, node, l.pod(t, w.name).Spec.NodeName)
		}
		_, last, _, _ := w.seen()
		require.True(t, last.Interrupted)
		require.False(t, last.FinishedAt.Before(last.StartedAt))
	}
	restore(node)
	l.awaitReady(t, node)
	time.Sleep(3 * time.Second) // for a kubelet that would start what it ran before
	for _, w := range l.writers {
		s, _, lost, now := w.seen()
		require.True(t, s.Running && !lost, w.name.ID)
		more := 0
		if slices.Contains(on, w) {
			more = 1
		}
		all, _ := w.stamps(t)
		require.Equal(t, starts[w]+more, now, "starts of %s", w.name.ID)
		require.Len(t, all, many[w]+more, "runs of %s", w.name.ID)
	}
	l.check(t)
}
