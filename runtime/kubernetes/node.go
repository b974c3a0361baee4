package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	core1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth/runtime"
)

// reach is what is known about the processes on a node.
type reach string

const (
	nodeReady  reach = "ready"  // its kubelet reports what they do; it may take no new ones
	nodeSilent reach = "silent" // it does not: they may run on
	nodeFenced reach = "fenced" // none runs: an operator has declared the node off
)

// reachOf returns the reach of a node; of nil fenced, because the object of a node is removed
// when its machine is. A taint on a node that is ready does not count: its processes run, and
// Kubernetes has their kubelet end them. Kubernetes' own garbage collector takes the two
// together too. A kubelet that reports that its node is not ready, for example without a network
// plugin, answers: it is not silent.
func reachOf(node *core1.Node) reach {
	if node == nil {
		return nodeFenced
	}
	status := core1.ConditionUnknown
	for _, condition := range node.Status.Conditions {
		if condition.Type == core1.NodeReady {
			status = condition.Status
		}
	}
	switch {
	case status == core1.ConditionTrue:
		return nodeReady
	case declaredOff(node):
		return nodeFenced
	case status == core1.ConditionFalse:
		return nodeReady
	}
	return nodeSilent
}

// declaredOff reports whether an operator, or whoever removed the object of a node, has declared the node off.
func declaredOff(node *core1.Node) bool {
	return node == nil || slices.ContainsFunc(node.Spec.Taints, func(t core1.Taint) bool { return t.Key == core1.TaintNodeOutOfService })
}

// isReady reports whether a node takes pods, but for cordons and taints.
func isReady(node *core1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c core1.NodeCondition) bool {
		return c.Type == core1.NodeReady && c.Status == core1.ConditionTrue
	})
}

// watchedNodes holds the nodes as Watch saw them last, while it runs, so that a call about a container
// need not ask for its node.
type watchedNodes struct {
	mu    sync.Mutex             // guards nodes
	nodes map[string]watchedNode // by their names; nil: nobody watches
}

type watchedNode struct {
	reach     reach
	addresses addresses
	machine   runtime.Machine
}

func newWatchedNode(node *core1.Node) watchedNode {
	return watchedNode{reachOf(node), addressesOf(node), machineOf(node)}
}

// begin replaces all by those of a list. end forgets them.
func (w *watchedNodes) begin(list []core1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = map[string]watchedNode{}
	for i := range list {
		w.nodes[list[i].Name] = newWatchedNode(&list[i])
	}
}

func (w *watchedNodes) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = nil
}

func (w *watchedNodes) set(node *core1.Node, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if deleted {
		delete(w.nodes, node.Name)
		return
	}
	w.nodes[node.Name] = newWatchedNode(node)
}

// ready reports whether a node is known to be ready. Any other reach decides about runs, so it is asked for.
func (w *watchedNodes) ready(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[name].reach == nodeReady
}

// withAddresses returns the first node by name that is known to have all addresses of a list, and its own; empty: ask.
func (w *watchedNodes) withAddresses(list []string) (string, addresses) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if all := w.nodes[name].addresses; all.have(list) {
			return name, all
		}
	}
	return "", nil
}

// addresses are those at which clients reach a node, and whether packets arrive there with them. The cluster does not know that of
// external ones: those of most providers are translated on the way, others are on an interface of the node.
type addresses map[string]bool

func (a addresses) have(list []string) bool {
	return !slices.ContainsFunc(list, func(one string) bool { _, has := a[one]; return !has })
}

func addressesOf(node *core1.Node) addresses {
	all := addresses{}
	for text := range strings.SplitSeq(node.Annotations[annotationPublic], ",") {
		if ip, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil {
			all[ip.String()] = false
		}
	}
	for _, one := range node.Status.Addresses {
		all[one.Address] = all[one.Address] || one.Type != core1.NodeExternalIP
	}
	return all
}

// machines returns the nodes as machines, in no order; nil: nobody watches.
func (w *watchedNodes) machines() (list []runtime.Machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range w.nodes {
		list = append(list, node.machine)
	}
	return list
}

// Machines returns the nodes as Watch saw them last, in no order; nil while it does not run.
func (e *Engine) Machines() []runtime.Machine { return e.watched.machines() }

// machineOf returns a node as clients see it.
func machineOf(node *core1.Node) runtime.Machine {
	room := node.Status.Allocatable
	return runtime.Machine{Name: node.Name, Ready: isReady(node), Closed: node.Spec.Unschedulable,
		CPUs: int(room.Cpu().Value()), Memory: room.Memory().Value()}
}

// reachOfNode returns the reach of a node.
func (e *Engine) reachOfNode(ctx context.Context, name string) (reach, error) {
	if e.watched.ready(name) {
		return nodeReady, nil
	}
	node, err := e.node(ctx, name)
	if err != nil {
		return "", err
	}
	return reachOf(node), nil
}

// node returns a node of the cluster; nil: its object is removed.
func (e *Engine) node(ctx context.Context, name string) (*core1.Node, error) {
	node := &core1.Node{}
	err := e.api().Get().Resource("nodes").Name(name).Do(ctx).Into(node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return node, err
}

// mayBeAsked reports whether a container that has to leave its node can be asked to exit. A node that was declared
// off may still count as ready: nobody waits for an answer of it.
func (e *Engine) mayBeAsked(ctx context.Context, pod *core1.Pod) (bool, error) {
	node, err := e.node(ctx, pod.Spec.NodeName)
	return err == nil && !declaredOff(node), err
}

// observe returns a pod of this store, as get does. If the pod may have a process on a node that
// is silent, it returns ErrLost with the pod. If that node is fenced, it first records the end
// of the run in the pod, so that the state follows from the pod alone from then on.
func (e *Engine) observe(ctx context.Context, name string) (*core1.Pod, record, error) {
	pod, r, err := e.get(ctx, name)
	if err == nil && pod.Annotations[annotationEnd] != "" && pod.DeletionTimestamp == nil { // the deletion has failed, see fence
		return pod, r, e.deletePod(ctx, pod, 0)
	}
	if err != nil || pod.Spec.NodeName == "" || containerState(pod).Terminated != nil || pod.Annotations[annotationEnd] != "" {
		return pod, r, err
	}
	at := nodeFenced
	switch {
	case ended(pod) && reportsRunning(pod): // Kubernetes has ended the object of a pod on a fenced node
	case ended(pod):
		return pod, r, nil
	default:
		if at, err = e.reachOfNode(ctx, pod.Spec.NodeName); err != nil {
			return nil, r, err
		}
	}
	switch at {
	case nodeSilent:
		err = fmt.Errorf("%w: node %s", runtime.ErrLost, pod.Spec.NodeName)
	case nodeFenced:
		err = e.fence(ctx, pod)
	}
	return pod, r, err
}

// taintsWait is how long after the fence of a node a pod on it is not replaced. The controller
// of taints deletes the pods that it has found on the node, at the same event, by their names: it
// would end the run of the successor.
const taintsWait = time.Second

// awaitTaints waits until the controller of taints has deleted a pod of a fenced node.
func awaitTaints(ctx context.Context, pod *core1.Pod) error {
	at, err := time.Parse(time.RFC3339Nano, pod.Annotations[annotationEnd])
	if err != nil { // its node was not fenced
		return nil
	}
	return runtime.Sleep(ctx, min(taintsWait, time.Until(at.Add(taintsWait))))
}

// fence records the end of a pod whose node is fenced, and deletes the pod: the node must not
// start it when it comes back. Its log is lost with the node.
func (e *Engine) fence(ctx context.Context, pod *core1.Pod) error {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	if err := e.patch(ctx, pod, "", operation{"add", "/metadata/annotations/berth.io~1ended", now}); err != nil {
		return err
	}
	pod.Annotations[annotationEnd] = now
	e.log.Warn("a container ended with its node", "pod", pod.Name, "node", pod.Spec.NodeName)
	e.followers.stop(pod.UID)
	return e.deletePod(ctx, pod, 0)
}
