package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	core1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth/runtime"
)

// reach is what is known about the processes on a node.
type reach string

const (
	nodeReady  reach = "ready"  // its kubelet reports what they do
	nodeSilent reach = "silent" // it does not: they may run on
	nodeFenced reach = "fenced" // none runs: an operator has declared the node off
)

// reachOf returns the reach of a node; of nil fenced, because the object of a node is removed
// when its machine is. A taint on a node that is ready does not count: its processes run, and
// Kubernetes has their kubelet end them. Kubernetes' own garbage collector takes the two
// together too.
func reachOf(node *core1.Node) reach {
	if node == nil {
		return nodeFenced
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == core1.NodeReady && condition.Status == core1.ConditionTrue {
			return nodeReady
		}
	}
	if slices.ContainsFunc(node.Spec.Taints, func(t core1.Taint) bool { return t.Key == core1.TaintNodeOutOfService }) {
		return nodeFenced
	}
	return nodeSilent
}

// readyNodes holds when nodes were last found to be ready, so that the inspections of many
// containers share one question.
type readyNodes struct {
	mu sync.Mutex // guards at
	at map[string]time.Time
}

func (r *readyNodes) fresh(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.at[name]) < freshFor
}

func (r *readyNodes) put(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[string]time.Time{}
	}
	r.at[name] = time.Now()
}

func (r *readyNodes) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.at, name)
}

// reachOfNode returns the reach of a node.
func (e *Engine) reachOfNode(ctx context.Context, name string) (reach, error) {
	if e.ready.fresh(name) {
		return nodeReady, nil
	}
	node := &core1.Node{}
	err := e.client.Get().Resource("nodes").Name(name).Do(ctx).Into(node)
	switch {
	case apierrors.IsNotFound(err):
		node = nil
	case err != nil:
		return "", err
	}
	r := reachOf(node)
	if r == nodeReady {
		e.ready.put(name)
	}
	return r, nil
}

// observe returns a pod of this store, as get does. If the pod may have a process on a node that
// is silent, it returns ErrLost with the pod. If that node is fenced, it first records the end
// of the run in the pod, so that the state follows from the pod alone from then on.
func (e *Engine) observe(ctx context.Context, name string) (*core1.Pod, record, error) {
	pod, r, err := e.get(ctx, name)
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
	select {
	case <-time.After(min(taintsWait, time.Until(at.Add(taintsWait)))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
