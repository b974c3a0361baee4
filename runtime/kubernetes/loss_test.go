//go:build cluster

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
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
		t.Logf("%s: %d containers, %s to %s, median %s", what, len(times), times[0], times[len(times)-1], times[len(times)/2])
	}
}

// loss is a cluster with writers, and what the test knows of them.
type loss struct {
	cluster
	writers []*writer
	reports *kubetest.Writers
	times   map[string][]time.Duration // from a fence to the first stamp of the next run
}

// writer is a container that writes, with what was observed last.
type writer struct {
	name   runtime.Name
	stamps string // path of what it writes
	wake   chan struct{}

	mu     sync.Mutex    // guards the rest
	state  runtime.State // the last one
	end    runtime.State // the last one without a run
	lost   bool
	starts int
}

func startLoss(t *testing.T) *loss {
	t.Helper()
	l := &loss{cluster: newCluster(t), times: map[string][]time.Duration{}, reports: kubetest.ListenToWriters(t)}
	image := push(t, enginetest.StartRegistryAt(t, l.host+":5000", "", ""), "loss:1")
	require.NoError(t, l.Pull(t.Context(), image, runtime.Auth{}, nil))
	program := kubetest.Writer(t)
	for i := range 3 {
		w := &writer{name: runtime.Name{ID: fmt.Sprint("writer", i), Role: runtime.Server}, wake: make(chan struct{}, 1)}
		volume := filepath.Join(l.cfg.Volumes, w.name.ID)
		w.stamps = filepath.Join(volume, "stamps")
		require.NoError(t, os.Mkdir(volume, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(volume, "writer"), program, 0o755))
		_, err := l.Create(t.Context(), runtime.Spec{
			Name: w.name, SpecHash: "1", Image: image, Mounts: []runtime.Mount{{Source: volume, Target: "/home/container"}},
			Command: []string{"/home/container/writer", "/home/container/stamps", l.reports.Addr},
		})
		require.NoError(t, err)
		l.writers = append(l.writers, w)
	}
	l.control(t)
	for _, w := range l.writers {
		kubetest.AwaitAnotherRun(t, w.stamps, "")
	}
	l.awaitRunning(t) // a writer writes before its node reports that it runs
	return l
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

// check requires that each stamp that was reported is there.
func (l *loss) check(t *testing.T) {
	t.Helper()
	var files []string
	for _, w := range l.writers {
		files = append(files, w.stamps)
	}
	l.reports.Check(t, files...)
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

func (l *loss) awaitLost(t *testing.T, list []*writer, want bool) {
	t.Helper()
	enginetest.Until(t, 3*time.Minute, fmt.Sprint("writers that are lost: ", want), func() bool {
		for _, w := range list {
			if _, _, lost, _ := w.seen(); lost != want {
				return false
			}
		}
		return true
	})
}

// awaitRunning waits until every writer was observed to run.
func (l *loss) awaitRunning(t *testing.T) {
	t.Helper()
	enginetest.Until(t, 3*time.Minute, "writers that run", func() bool {
		return !slices.ContainsFunc(l.writers, func(w *writer) bool {
			s, _, lost, _ := w.seen()
			return !s.Running || lost
		})
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
		f.run, f.pod, f.id = kubetest.LastRun(t, w.stamps), string(pod.UID), pod.Status.ContainerStatuses[0].ContainerID
		return f
	}
	before := map[*writer]facts{}
	for _, w := range l.writers {
		before[w] = get(w)
	}
	kubetest.CutLink(t, node)
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
	kubetest.HealLink(t, node)
	l.awaitLost(t, l.writers, false)
	l.namespace.AwaitNode(t, node)
	time.Sleep(3 * time.Second)
	for w, was := range before {
		require.Equal(t, was, get(w), w.name.ID)
		_, had := kubetest.Runs(t, w.stamps)
		enginetest.Until(t, 3*time.Minute, "it writes on", func() bool {
			_, has := kubetest.Runs(t, w.stamps)
			return has[was.run] > had[was.run]
		})
	}
	l.check(t)
}

// testPowerCut fences a node as soon as it is off: the cluster still takes 10 s to find that out.
func testPowerCut(t *testing.T, l *loss) {
	l.lose(t, "from the power cut and its taint", 40*time.Second, func(node string, _ []*writer) {
		kubetest.PowerOff(t, node)
		l.namespace.Fence(t, node, true)
	}, func(node string) {
		kubetest.PowerOn(t, node)
		l.namespace.AwaitNode(t, node)
		l.namespace.Fence(t, node, false)
	})
}

// testPowerCutFencedLater fences a node that was found to be off.
func testPowerCutFencedLater(t *testing.T, l *loss) {
	l.lose(t, "from the taint of a node that does not answer", 30*time.Second, func(node string, on []*writer) {
		kubetest.PowerOff(t, node)
		l.awaitLost(t, on, true)
		time.Sleep(3 * time.Second)
		l.awaitLost(t, on, true)
		l.namespace.Fence(t, node, true)
	}, func(node string) {
		kubetest.PowerOn(t, node)
		l.namespace.AwaitNode(t, node)
		l.namespace.Fence(t, node, false)
	})
}

func testNodeRemoved(t *testing.T, l *loss) {
	l.lose(t, "from the removal of a node", 30*time.Second, func(node string, _ []*writer) {
		kubetest.PowerOff(t, node)
		l.namespace.RemoveNode(t, node)
	}, func(node string) { kubetest.PowerOn(t, node) })
}

// testBoot: the containers ended with their node, and start again once it answers.
func testBoot(t *testing.T, l *loss) {
	l.lose(t, "from a boot", time.Minute, func(node string, _ []*writer) {
		kubetest.PowerOff(t, node)
		kubetest.PowerOn(t, node)
	}, func(string) {})
}

// lose ends a node, and requires that each of its containers runs again within a limit, and that
// the others are not disturbed.
func (l *loss) lose(t *testing.T, what string, limit time.Duration, end func(node string, on []*writer), restore func(node string)) {
	t.Helper()
	node, on := l.victim(t)
	runs, starts, many := map[*writer]string{}, map[*writer]int{}, map[*writer]int{}
	for _, w := range l.writers {
		runs[w] = kubetest.LastRun(t, w.stamps)
		all, _ := kubetest.Runs(t, w.stamps)
		many[w] = len(all)
		_, _, _, starts[w] = w.seen()
	}
	end(node, on)
	fenced := time.Now()
	for _, w := range on {
		kubetest.AwaitAnotherRun(t, w.stamps, runs[w])
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
	l.namespace.AwaitNode(t, node)
	time.Sleep(3 * time.Second) // for a kubelet that would start what it ran before
	for _, w := range l.writers {
		s, _, lost, now := w.seen()
		require.True(t, s.Running && !lost, w.name.ID)
		more := 0
		if slices.Contains(on, w) {
			more = 1
		}
		all, _ := kubetest.Runs(t, w.stamps)
		require.Equal(t, starts[w]+more, now, "starts of %s", w.name.ID)
		require.Len(t, all, many[w]+more, "runs of %s", w.name.ID)
	}
	l.check(t)
}
