//go:build cluster

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/kubetest"
)

// TestMachineIsLost cuts the link of a machine, and ends machines at once, under servers that
// write all the time. It is alone on the cluster: it is not parallel.
func TestMachineIsLost(t *testing.T) {
	p := newPanel(t)
	b := berthtest.Start(t, berthtest.Options{Config: p.remote()})
	w := &writers{Berth: b, socket: b.Listen(t, "/ws?since=0"), reports: kubetest.ListenToWriters(t)}
	program := kubetest.Writer(t)
	for _, id := range []string{"a", "b"} {
		b.Made(t, id, berthtest.Spec{"startup_command": "exec ./writer stamps " + w.reports.Addr, "restart_policy": map[string]any{"mode": "never"}})
		require.NoError(t, os.WriteFile(filepath.Join(b.Container(t, id).Mount.Source, "writer"), program, 0o755))
		w.ids, w.files = append(w.ids, id), append(w.files, filepath.Join(b.Container(t, id).Mount.Source, "stamps"))
		b.Verb(t, id, "start")
		b.State(t, id, "running")
	}
	for _, file := range w.files {
		kubetest.AwaitAnotherRun(t, file, "")
	}
	t.Run("cut link", w.testCutLink)
	t.Run("power cut", func(t *testing.T) { w.testPowerCut(t, false) })
	t.Run("power cut, fenced later", func(t *testing.T) { w.testPowerCut(t, true) })
	checkNumbers(t, b, w.socket)
	require.Zero(t, p.requireReceived(t, b))
}

// writers are servers of a daemon, and what its panel has received of them.
type writers struct {
	*berthtest.Berth
	socket  *berthtest.Socket
	reports *kubetest.Writers
	ids     []string
	files   []string // what each writes
}

// at is where a server runs.
type at struct{ node, pod, container, run string }

func (w *writers) where(t *testing.T) (all []at) {
	t.Helper()
	for i, id := range w.ids {
		pods := w.Cluster.Pods(t, id)
		require.Len(t, pods, 1)
		require.Equal(t, core1.PodRunning, pods[0].Status.Phase)
		require.EqualValues(t, pods[0].Spec.NodeName, w.Container(t, id).Machine)
		all = append(all, at{pods[0].Spec.NodeName, string(pods[0].UID), pods[0].Status.ContainerStatuses[0].ContainerID, kubetest.LastRun(t, w.files[i])})
	}
	return all
}

// reaches waits until the condition MachineReachable of a server has a status. While it is
// Unknown, nobody knows whether the server runs.
func (w *writers) reaches(t *testing.T, id, status string) {
	t.Helper()
	c := w.Await(t, id, "MachineReachable is "+status, func(c berthtest.Container) bool {
		return v1.FindCondition(c.Conditions, v1.MachineReachable).Status == status
	})
	require.EqualValues(t, v1.Running, c.State)
	require.Equal(t, status, v1.FindCondition(c.Conditions, v1.Started).Status)
}

// received returns the transitions of a server since a message.
func (w *writers) received(from int, id string) (list []string) {
	for _, m := range w.socket.Messages()[from:] {
		switch {
		case m.Seq == 0 || m.Container != id:
		case m.Event == v1.EventMessage:
			list = append(list, m.Reason)
		case m.ExitCode != nil:
			list = append(list, fmt.Sprint(m.Data, " ", m.Reason, " ", *m.ExitCode))
		default:
			list = append(list, m.Data)
		}
	}
	return list
}

// testCutLink: the servers run on, so nothing is done to them, and the panel does not see an exit.
func (w *writers) testCutLink(t *testing.T) {
	before, from := w.where(t), len(w.socket.Messages())
	node := before[0].node
	kubetest.CutLink(t, node)
	w.reaches(t, "a", v1.Unknown)
	pause(10 * time.Second)
	w.reaches(t, "a", v1.Unknown)
	kubetest.HealLink(t, node)
	w.reaches(t, "a", v1.True)
	w.Cluster.AwaitNode(t, node)
	pause(3 * time.Second)
	require.Equal(t, before, w.where(t))
	for i, id := range w.ids {
		var want []string
		if before[i].node == node {
			want = []string{v1.ReasonMachineUnreachable, v1.ReasonAnswers}
		}
		require.Equal(t, want, w.received(from, id), id)
	}
	w.reports.Check(t, w.files...)
}

// testPowerCut fences a node that is off: at once, or after berth has found out. Its servers run
// elsewhere, although their policy is never.
func (w *writers) testPowerCut(t *testing.T, later bool) {
	before, from := w.where(t), len(w.socket.Messages())
	node := before[0].node
	kubetest.PowerOff(t, node)
	want, limit := []string{"exit MachineLost 137", "starting", "running"}, 40*time.Second
	if later {
		for i, id := range w.ids {
			if before[i].node == node {
				w.reaches(t, id, v1.Unknown)
			}
		}
		want, limit = append([]string{v1.ReasonMachineUnreachable, v1.ReasonAnswers}, want...), 30*time.Second
	}
	w.Cluster.Fence(t, node, true)
	fenced := time.Now()
	for i, id := range w.ids {
		if before[i].node != node {
			continue
		}
		kubetest.AwaitAnotherRun(t, w.files[i], before[i].run)
		t.Logf("%s writes elsewhere %s after the taint", id, time.Since(fenced).Round(10*time.Millisecond))
		require.Less(t, time.Since(fenced), limit)
		w.socket.Event(t, from, id, "running")
		require.Equal(t, want, w.received(from, id), id)
		require.Equal(t, "running", string(w.Container(t, id).State))
	}
	kubetest.PowerOn(t, node)
	w.Cluster.AwaitNode(t, node)
	w.Cluster.Fence(t, node, false)
	pause(3 * time.Second) // for a kubelet that would start what it ran before
	for i, now := range w.where(t) {
		runs, _ := kubetest.Runs(t, w.files[i])
		require.Equal(t, now.run, runs[len(runs)-1])
		if before[i].node != node {
			require.Equal(t, before[i], now)
			require.Empty(t, w.received(from, w.ids[i]))
			continue
		}
		require.NotEqual(t, node, now.node)
		require.Equal(t, before[i].run, runs[len(runs)-2], "one run after the other")
		require.Equal(t, want, w.received(from, w.ids[i]))
	}
	w.reports.Check(t, w.files...)
}
