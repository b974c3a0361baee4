package kubernetes

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/runtime"
	"berth/runtime/keeper"
)

// testNode returns a node with a status of its condition Ready, and taints.
func testNode(name string, status core1.ConditionStatus, taints ...string) *core1.Node {
	node := &core1.Node{ObjectMeta: meta.ObjectMeta{Name: name}}
	node.Status.Conditions = []core1.NodeCondition{
		{Type: core1.NodeMemoryPressure, Status: core1.ConditionTrue}, {Type: core1.NodeReady, Status: status},
	}
	for _, key := range taints {
		node.Spec.Taints = append(node.Spec.Taints, core1.Taint{Key: key, Effect: core1.TaintEffectNoExecute})
	}
	return node
}

func TestReachOfNode(t *testing.T) {
	for _, test := range []struct {
		node *core1.Node
		want reach
	}{
		{testNode("n1", core1.ConditionTrue), nodeReady},
		{testNode("n1", core1.ConditionTrue, core1.TaintNodeOutOfService), nodeReady},
		{testNode("n1", core1.ConditionUnknown), nodeSilent},
		{testNode("n1", core1.ConditionFalse), nodeReady}, // its kubelet answers
		{testNode("n1", core1.ConditionFalse, core1.TaintNodeOutOfService), nodeFenced},
		{testNode("n1", core1.ConditionUnknown, core1.TaintNodeUnreachable), nodeSilent},
		{testNode("n1", core1.ConditionUnknown, core1.TaintNodeUnreachable, core1.TaintNodeOutOfService), nodeFenced},
		{&core1.Node{}, nodeSilent},
		{nil, nodeFenced},
	} {
		require.Equal(t, test.want, reachOf(test.node), "%+v", test.node)
	}
}

func TestContainersOfANodeAreNamed(t *testing.T) {
	pod := func(id, node string) ourPod {
		return ourPod{pod: "pod-" + id, node: node, name: runtime.Name{ID: id, Role: runtime.Server}}
	}
	p := newPlacement([]ourPod{pod("a", "n1"), pod("b", "n2"), pod("c", "")}, []core1.Node{*testNode("n1", core1.ConditionTrue), *testNode("n2", core1.ConditionTrue)})
	p.setPod(pod("c", "n1"), false)
	named := func(node *core1.Node, deleted bool, want ...string) {
		t.Helper()
		names, changed := p.setNode(node, deleted)
		var ids []string
		for _, n := range names {
			require.Equal(t, runtime.Server, n.Role)
			ids = append(ids, n.ID)
		}
		require.ElementsMatch(t, want, ids)
		require.Equal(t, len(want) > 0, changed)
	}
	named(testNode("n1", core1.ConditionTrue), false) // its heartbeat
	named(testNode("n1", core1.ConditionUnknown), false, "a", "c")
	named(testNode("n1", core1.ConditionUnknown, core1.TaintNodeUnreachable), false)
	p.setPod(pod("a", "n1"), true)
	named(testNode("n1", core1.ConditionUnknown, core1.TaintNodeOutOfService), false, "c")
	named(testNode("n1", core1.ConditionTrue), false, "c")
	named(testNode("n1", core1.ConditionTrue), true, "c")
	named(testNode("n2", core1.ConditionTrue), true, "b")
}

func TestWatchedNodes(t *testing.T) {
	var w watchedNodes
	w.end()
	require.False(t, w.ready("n1"))
	one, two := testNode("n1", core1.ConditionTrue), testNode("n2", core1.ConditionUnknown)
	one.Status.Addresses = []core1.NodeAddress{{Address: "10.0.0.1"}}
	w.begin([]core1.Node{*one, *two})
	require.True(t, w.ready("n1"))
	require.False(t, w.ready("n2"))
	require.False(t, w.ready("n3"))
	with := func(list ...string) string {
		name, _ := w.withAddresses(list)
		return name
	}
	require.Equal(t, "n1", with("10.0.0.1"))
	one.Status.Addresses = nil // the address moves
	two.Status.Addresses = []core1.NodeAddress{{Address: "10.0.0.1"}}
	w.set(one, false)
	require.Empty(t, with("10.0.0.1"))
	w.set(two, false)
	require.Equal(t, "n2", with("10.0.0.1"))
	one.Spec.Unschedulable = true
	w.set(one, false)
	require.ElementsMatch(t, []runtime.Machine{{Name: "n1", Ready: true, Closed: true}, {Name: "n2"}}, w.machines())
	w.set(one, true)
	require.False(t, w.ready("n1"))
	require.Len(t, w.machines(), 1)
	w.end()
	require.Nil(t, w.machines())
	require.Empty(t, with("10.0.0.1"), "what nobody watches may be another by now")
}

// TestAddressesBehindANAT: a port whose address is translated on its way to a node is published at all addresses of the node.
// The next run, which may be on another node, has the address of the spec.
func TestAddressesBehindANAT(t *testing.T) {
	node := testNode("n1", core1.ConditionTrue)
	node.Annotations = map[string]string{annotationPublic: "203.0.113.7, 2001:DB8::7,none"}
	node.Status.Addresses = []core1.NodeAddress{
		{Type: core1.NodeInternalIP, Address: "10.0.0.1"}, {Type: core1.NodeExternalIP, Address: "198.51.100.1"},
		{Type: core1.NodeInternalIP, Address: "10.0.0.2"}, {Type: core1.NodeExternalIP, Address: "10.0.0.2"},
	}
	e := testEngine()
	e.watched.begin([]core1.Node{*testNode("n0", core1.ConditionTrue), *node})
	s := testSpec()
	s.Ports = nil
	for i, ip := range []string{"203.0.113.7", "2001:db8::7", "10.0.0.1", "198.51.100.1", "10.0.0.2", "0.0.0.0"} {
		s.Ports = append(s.Ports, runtime.Port{IP: ip, Port: 20001 + i, ContainerPort: 20001 + i, Protocol: "tcp"})
	}
	pod, err := e.build(s, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	published := func(pod *core1.Pod, want ...string) {
		t.Helper()
		r, _ := e.recordOf(pod)
		require.NoError(t, e.bindToNode(t.Context(), pod, portsOf(pod, r)))
		require.Equal(t, onNode("n1"), pod.Spec.Affinity)
		var list []string
		for _, p := range serverOf(pod).Ports {
			list = append(list, p.HostIP)
		}
		require.Equal(t, want, list)
	}
	published(pod, "", "", "10.0.0.1", "", "10.0.0.2", "0.0.0.0")
	r, _ := e.recordOf(pod)
	next, err := e.successor(pod, r, begun)
	require.NoError(t, err)
	node.Status.Addresses = append(node.Status.Addresses, core1.NodeAddress{Type: core1.NodeInternalIP, Address: "203.0.113.7"})
	e.watched.set(node, false)
	published(next, "203.0.113.7", "", "10.0.0.1", "", "10.0.0.2", "0.0.0.0")
	require.Empty(t, serverOf(pod).Ports[0].HostIP, "the pod of the last run is as it was")

	r.Ports = nil // of an older berth
	require.Equal(t, "10.0.0.1", portsOf(pod, r)[2].IP)
	e.watched.set(testNode("n1", core1.ConditionTrue), false)
	e.watched.set(node, true)
	e = against(t, e, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, http.StatusOK, core1.NodeList{}) })
	require.ErrorIs(t, e.bindToNode(t.Context(), next, s.Ports), runtime.ErrNoAddress)
}

// startedPod returns a pod of a run on a node, whose container has a state.
func startedPod(t *testing.T, s core1.ContainerState) *core1.Pod {
	t.Helper()
	pod, err := testEngine().build(testSpec(), resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	pod.Annotations[annotationStart] = begun.Format(time.RFC3339Nano)
	pod.Spec.SchedulingGates, pod.Spec.NodeName = nil, "n1"
	pod.Status.Phase = core1.PodRunning
	pod.Status.ContainerStatuses = []core1.ContainerStatus{{Name: serverContainer, State: s}}
	return pod
}

var (
	begun = time.Date(2026, 11, 27, 12, 0, 0, 5, time.UTC)
	runs  = core1.ContainerState{Running: &core1.ContainerStateRunning{StartedAt: meta.Time{Time: begun.Truncate(time.Second)}}}
	waits = core1.ContainerState{Waiting: &core1.ContainerStateWaiting{Reason: "ContainerCreating"}}
)

func exited(code int32, reason string) core1.ContainerState {
	return core1.ContainerState{Terminated: &core1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: meta.Time{Time: begun.Add(time.Hour)}}}
}

// disrupted marks a pod as Kubernetes marks one that it deletes for a reason of the node.
func disrupted(pod *core1.Pod, reason string) *core1.Pod {
	pod.Status.Conditions = append(pod.Status.Conditions, core1.PodCondition{Type: core1.DisruptionTarget, Status: core1.ConditionTrue, Reason: reason})
	return pod
}

// deleted marks a pod as one whose deletion was requested.
func deleted(pod *core1.Pod) *core1.Pod {
	now := meta.Now()
	pod.DeletionTimestamp = &now
	return pod
}

// TestOutOfMemory: containerd reports every exit after the kernel has killed a process as one for want of memory, and the
// keeper the exits that are not.
func TestOutOfMemory(t *testing.T) {
	for message, want := range map[string]bool{"": true, keeper.Survived: false} {
		pod := startedPod(t, exited(3, "OOMKilled"))
		pod.Status.ContainerStatuses[0].State.Terminated.Message = message
		r, _ := testEngine().recordOf(pod)
		require.Equal(t, want, state(pod, r).OOMKilled)
	}
}

func TestInterruptedRuns(t *testing.T) {
	failed := func(pod *core1.Pod, reason string) *core1.Pod {
		pod.Status.Phase, pod.Status.Reason = core1.PodFailed, reason
		return pod
	}
	killedByEngine := deleted(startedPod(t, exited(137, "Error")))
	killedByEngine.Annotations[annotationKill] = "true"
	fenced := startedPod(t, runs)
	fenced.Annotations[annotationEnd] = begun.Add(time.Minute).Format(time.RFC3339Nano)
	for what, test := range map[string]struct {
		pod  *core1.Pod
		want bool
		code int
	}{
		"its own exit":                              {startedPod(t, exited(3, "Error")), false, 3},
		"killed for its memory":                     {startedPod(t, exited(137, "OOMKilled")), false, 137},
		"its node was fenced":                       {fenced, true, killed},
		"found dead after a boot, by the kubelet":   {startedPod(t, exited(137, "ContainerStatusUnknown")), true, 137},
		"found dead after a boot, by containerd":    {startedPod(t, exited(255, "Unknown")), true, 255},
		"drained":                                   {disrupted(startedPod(t, exited(0, "Completed")), "EvictionByEvictionAPI"), true, 0},
		"evicted for the room of others":            {failed(disrupted(startedPod(t, exited(137, "Error")), "TerminationByKubelet"), "Evicted"), true, 137},
		"evicted because it used up its own room":   {failed(startedPod(t, exited(137, "Error")), "Evicted"), false, 137},
		"ended by the garbage collector of its pod": {failed(disrupted(startedPod(t, runs), "DeletionByPodGC"), ""), true, killed},
		"deleted by somebody":                       {deleted(startedPod(t, exited(143, "Error"))), true, 143},
		"deleted by the engine, for a kill":         {killedByEngine, false, 137},
	} {
		r, ours := testEngine().recordOf(test.pod)
		require.True(t, ours)
		s := state(test.pod, r)
		require.False(t, s.Running || s.Starting, what)
		require.Equal(t, test.want, s.Interrupted, what)
		require.Equal(t, test.code, s.ExitCode, what)
		require.Equal(t, begun, s.StartedAt, what)
		require.False(t, s.FinishedAt.Before(s.StartedAt), what)

		next, err := testEngine().successor(test.pod, r, time.Time{})
		require.NoError(t, err)
		r, _ = testEngine().recordOf(next)
		inherited := state(next, r)
		require.Equal(t, test.want, inherited.Interrupted, what)
		require.Empty(t, next.Annotations[annotationEnd], what)
		next, err = testEngine().successor(test.pod, r, begun.Add(time.Second))
		require.NoError(t, err)
		require.False(t, ended(next), what)
	}
}

// TestDeletedBeforeItRan: others delete pods by name, so a successor may be meant for the pod
// before it. One without a node never runs.
func TestDeletedBeforeItRan(t *testing.T) {
	pod, r := deletedWhileItStarts(t, "")
	require.True(t, ended(pod))
	s := state(pod, r)
	require.False(t, s.Starting)
	require.Equal(t, r.Last.StartedAt, s.StartedAt, "the start is still to happen")
	require.ErrorIs(t, testEngine().startResult(t.Context(), pod, r), errChanged, "it begins again")
	next, err := testEngine().successor(pod, r, begun.Add(time.Second))
	require.NoError(t, err)
	after, _ := testEngine().recordOf(next)
	require.Equal(t, r.Last, after.Last)
}

// TestDeletedByForceWhileItStarts: the node of a pod that was deleted with grace period 0 may be
// about to start the container, so the pod has ended when the node reports that.
func TestDeletedByForceWhileItStarts(t *testing.T) {
	pod, r := deletedWhileItStarts(t, "n2")
	require.False(t, ended(pod), "a second run would be a second writer")
	require.True(t, state(pod, r).Starting)
	require.ErrorIs(t, testEngine().startResult(t.Context(), pod, r), runtime.ErrStarting)

	pod.Status.Phase = core1.PodFailed // what its kubelet reports
	require.True(t, ended(pod))
	require.Equal(t, r.Last.StartedAt, state(pod, r).StartedAt, "the start is still to happen")
	require.ErrorIs(t, testEngine().startResult(t.Context(), pod, r), errChanged, "it begins again")
}

// deletedWhileItStarts returns a pod whose start others have interrupted by a deletion with grace
// period 0, with its record.
func deletedWhileItStarts(t *testing.T, node string) (*core1.Pod, record) {
	t.Helper()
	now, zero := meta.Now(), int64(0)
	pod := disrupted(startedPod(t, waits), "DeletionByTaintManager")
	pod.Spec.NodeName, pod.Status.Phase = node, core1.PodPending
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &zero
	r, _ := testEngine().recordOf(pod)
	r.Last = &run{StartedAt: begun.Add(-time.Hour), FinishedAt: begun, Interrupted: true}
	return pod, r
}

func TestAPodOfAFencedNodeIsReplacedLater(t *testing.T) {
	pod := startedPod(t, runs)
	began := time.Now()
	require.NoError(t, awaitTaints(t.Context(), pod))
	for _, end := range []time.Time{began.Add(-time.Hour), began.Add(-taintsWait)} {
		pod.Annotations[annotationEnd] = end.Format(time.RFC3339Nano)
		require.NoError(t, awaitTaints(t.Context(), pod))
	}
	require.Less(t, time.Since(began), taintsWait/2)
	for _, end := range []time.Time{began, began.Add(time.Hour)} { // the clock was set
		pod.Annotations[annotationEnd] = end.Format(time.RFC3339Nano)
		began := time.Now()
		require.NoError(t, awaitTaints(t.Context(), pod))
		require.WithinRange(t, time.Now(), began.Add(taintsWait/2), began.Add(time.Minute))
	}
}

func TestStartGoesOn(t *testing.T) {
	pod := startedPod(t, core1.ContainerState{})
	r, _ := testEngine().recordOf(pod)
	pod.Spec.NodeName, pod.Status.ContainerStatuses = "", nil
	require.ErrorContains(t, testEngine().startResult(t.Context(), pod, r), "no node was chosen yet")
	pod.Spec.NodeName = "n1"
	require.ErrorContains(t, testEngine().startResult(t.Context(), pod, r), "node n1 pulls the image")
	require.True(t, state(pod, r).Starting)
	require.NoError(t, testEngine().startResult(t.Context(), startedPod(t, runs), r))
	require.NoError(t, testEngine().startResult(t.Context(), startedPod(t, exited(0, "Completed")), r))
}

func TestFollowersOfAPodAreStopped(t *testing.T) {
	var f followers
	one, done := f.add(t.Context(), "1")
	defer done()
	other, done := f.add(t.Context(), "2")
	defer done()
	f.stop("1")
	require.Error(t, one.Err())
	require.NoError(t, other.Err())
	done()
	require.Len(t, f.all, 1)
}
