package kubernetes

import (
	"context"
	"errors"
	"slices"
	"time"

	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth/runtime"
	"berth/runtime/keeper"
)

// Inspect returns the state of n. With ErrLost it is the last one that the node of n reported.
// Start does not start a run again that Inspect has not reported.
func (e *Engine) Inspect(ctx context.Context, n runtime.Name) (s runtime.State, err error) {
	err = e.do(ctx, quick, "inspect", n.String(), func(ctx context.Context) error {
		pod, r, err := e.observe(ctx, e.podName(n))
		if err == nil && e.mayLeave(pod) {
			pod, r, err = e.leave(ctx, pod, r)
		}
		if pod != nil {
			s = state(pod, r)
		}
		if err == nil && s.Leaving {
			s.Leaving, err = e.mayBeAsked(ctx, pod)
		}
		if s.Starting {
			e.starting.Store(pod.Name, pod.UID)
		} else {
			e.starting.Delete(e.podName(n))
		}
		return err
	})
	return s, err
}

// outputTime is how long after its exit a pod that others have deleted is kept, for its output to be read.
const outputTime = 10 * time.Second

// exit is when Inspect saw first that a pod had ended.
type exit struct {
	pod types.UID
	at  time.Time
}

// mayLeave reports whether a pod that has ended is to be replaced by one with the gate, which is on no node:
// others have deleted it, and a drain of its node, an autoscaler and an upgrade wait until it is gone. Its
// output goes with it, so that has had its time to be read.
func (e *Engine) mayLeave(pod *core1.Pod) bool {
	if !ended(pod) {
		e.exits.Delete(pod.Name)
		return false
	}
	seen, known := e.exits.Load(pod.Name)
	if !known || seen.(exit).pod != pod.UID {
		seen = exit{pod.UID, time.Now()}
		e.exits.Store(pod.Name, seen)
	}
	return deletedByOthers(pod) && time.Since(seen.(exit).at) >= outputTime
}

// leaveAgain is the time until a pod is tried again whose successor the cluster has refused.
const leaveAgain = time.Minute

// leave replaces a pod that others have deleted by one with the gate. It stays if that one is refused, because a quota
// is used up or no node has its address any more: its record would be lost with it, and its state is known.
func (e *Engine) leave(ctx context.Context, pod *core1.Pod, r record) (*core1.Pod, record, error) {
	next, err := e.replace(ctx, pod, r, time.Time{})
	if err == nil {
		r, _ = e.recordOf(next)
		return next, r, nil
	}
	err = classify(err)
	if !errors.Is(err, runtime.ErrNoRoom) && !errors.Is(err, runtime.ErrNoAddress) && !errors.Is(err, runtime.ErrInvalid) {
		return nil, r, err
	}
	e.exits.Store(pod.Name, exit{pod.UID, time.Now().Add(leaveAgain - outputTime)})
	e.log.Warn("a pod that was deleted stays, and what waits for its end: its successor is refused", "pod", pod.Name, "err", err)
	return pod, r, nil
}

// List returns the containers of this store, of both roles.
func (e *Engine) List(ctx context.Context) ([]runtime.Found, error) {
	pods, _, err := e.pods(ctx)
	return found(pods), err
}

func found(pods []ourPod) (list []runtime.Found) {
	for _, pod := range pods {
		list = append(list, runtime.Found{Name: pod.name, State: pod.state, Mounts: pod.mounts})
	}
	return list
}

// ourPod is what the engine keeps of a pod of this store in a list.
type ourPod struct {
	pod    string // its name
	node   string // empty: none was chosen
	name   runtime.Name
	state  runtime.State
	mounts []string
	leaves bool // it has ended, and others have deleted it
}

func newOurPod(pod *core1.Pod, r record) ourPod {
	return ourPod{pod.Name, pod.Spec.NodeName, r.name(), state(pod, r), r.Mounts, leaves(pod)}
}

// leaves reports whether only the engine keeps a pod: it has ended, and others have deleted it.
func leaves(pod *core1.Pod) bool { return ended(pod) && deletedByOthers(pod) }

// pageSize is how many pods one answer has: a pod is some kB.
const pageSize = 500

// pods returns the pods of this store, and the version of the list, from which a watch continues.
func (e *Engine) pods(ctx context.Context) (pods []ourPod, version string, err error) {
	err = e.do(ctx, listed, "list", "containers", func(ctx context.Context) error {
		options := e.selected()
		for options.Limit = pageSize; ; {
			var list core1.PodList
			err := e.api().Get().Namespace(e.cfg.Namespace).Resource("pods").VersionedParams(options, e.parameters).Do(ctx).Into(&list)
			if err != nil {
				return err
			}
			for i := range list.Items {
				if r, ours := e.recordOf(&list.Items[i]); ours {
					pods = append(pods, newOurPod(&list.Items[i], r))
				}
			}
			version, options.Continue = list.ResourceVersion, list.Continue
			if list.Continue == "" {
				return nil
			}
		}
	})
	return pods, version, err
}

// nodes returns the nodes of the cluster, and the version of the list.
func (e *Engine) nodes(ctx context.Context) (nodes []core1.Node, version string, err error) {
	err = e.do(ctx, listed, "list", "nodes", func(ctx context.Context) error {
		var list core1.NodeList
		err := e.api().Get().Resource("nodes").Do(ctx).Into(&list)
		nodes, version = list.Items, list.ResourceVersion
		return err
	})
	return nodes, version, err
}

// selected returns options that select the pods of this store.
func (e *Engine) selected() *meta.ListOptions {
	return &meta.ListOptions{LabelSelector: labelStore + "=" + hash(e.cfg.StoreID)}
}

func state(pod *core1.Pod, r record) runtime.State {
	s := runtime.State{
		ContainerID: r.ContainerID, ImageID: r.ImageID, SpecHash: r.SpecHash, Revision: r.Revision, Incarnation: r.Incarnation,
		Machine: pod.Spec.NodeName, Live: r.Live, OwnLog: true, TTY: serverOf(pod).TTY, StopSignal: r.StopSignal, StopTimeout: r.StopTimeout,
	}
	last := r.Last
	switch {
	case ended(pod) && lastRun(pod) != nil:
		last = lastRun(pod)
	case running(pod):
		s.Running, s.Leaving, s.StartedAt = true, deletedByOthers(pod), startedAt(pod)
		if r.Last != nil {
			s.FinishedAt = r.Last.FinishedAt
		}
		return s
	default:
		s.Starting = !gated(pod) && !ended(pod)
	}
	if last != nil {
		s.StartedAt, s.FinishedAt, s.ExitCode, s.OOMKilled = last.StartedAt, last.FinishedAt, last.ExitCode, last.OOMKilled
		s.Interrupted = last.Interrupted
	}
	return s
}

// gated reports whether a pod was created and not started.
func gated(pod *core1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g core1.PodSchedulingGate) bool { return g.Name == gate })
}

func running(pod *core1.Pod) bool { return reportsRunning(pod) && !ended(pod) }

// reportsRunning reports whether the last report of a pod's node is that it runs.
func reportsRunning(pod *core1.Pod) bool { return containerState(pod).Running != nil }

// ended reports whether no process of a pod runs or will run. Only the node of a pod knows that, or the
// operator that has fenced the node. A deletion says nothing, also one with grace period 0: the node may be about to
// start the container. A pod that was deleted without a node gets none.
func ended(pod *core1.Pod) bool {
	return containerState(pod).Terminated != nil || pod.Status.Phase == core1.PodFailed || pod.Status.Phase == core1.PodSucceeded ||
		pod.Annotations[annotationEnd] != "" || pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
}

// ran reports whether a pod has or had a process.
func ran(pod *core1.Pod) bool { return reportsRunning(pod) || containerState(pod).Terminated != nil }

// interrupted reports whether the run of a pod that ended was ended by its node or for it: it
// was off, has booted, was drained, or needed the room for others, or somebody deleted the pod. Kubernetes
// does not count a pod that has used up its own room among these.
func interrupted(pod *core1.Pod) bool {
	if pod.Annotations[annotationEnd] != "" || deletedByOthers(pod) {
		return true
	}
	// What a kubelet, or containerd, says about a container that it finds dead after a boot.
	if t := containerState(pod).Terminated; t != nil && (t.Reason == "ContainerStatusUnknown" || t.Reason == "Unknown") {
		return true
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c core1.PodCondition) bool {
		return c.Type == core1.DisruptionTarget && c.Status == core1.ConditionTrue
	})
}

// deletedByOthers reports whether a deletion of a pod was not the engine's own. When it was requested
// cannot be known: the last step of a deletion replaces the time.
func deletedByOthers(pod *core1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.Annotations[annotationKill] == ""
}

func containerState(pod *core1.Pod) core1.ContainerState { return containerStatus(pod).State }

// containerStatus returns what the node reports about the server's container.
func containerStatus(pod *core1.Pod) (status core1.ContainerStatus) {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == serverContainer {
			status = s
		}
	}
	return status
}

// startedAt returns the time in the annotation of the start: the kubelet's times are whole
// seconds, so they could not tell two runs of one second apart. A pod that somebody else
// started has the kubelet's time.
func startedAt(pod *core1.Pod) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, pod.Annotations[annotationStart]); err == nil {
		return t
	}
	s := containerState(pod)
	switch {
	case s.Running != nil:
		return s.Running.StartedAt.Time
	case s.Terminated != nil:
		return s.Terminated.StartedAt.Time
	}
	return time.Time{}
}

// killed is the exit code of a container that SIGKILL ended.
const killed = 137

// lastRun returns the run of a pod that ended; nil if it never ran.
func lastRun(pod *core1.Pod) *run {
	one := &run{StartedAt: startedAt(pod), ExitCode: killed, Interrupted: interrupted(pod)}
	if !ran(pod) || one.StartedAt.IsZero() {
		return nil
	}
	if t := containerState(pod).Terminated; t != nil {
		one.FinishedAt, one.ExitCode = t.FinishedAt.Time, int(t.ExitCode)
		one.OOMKilled = t.Reason == "OOMKilled" && t.Message != keeper.Survived
		if behind := one.StartedAt.Sub(t.StartedAt.Time); !t.StartedAt.IsZero() && behind > time.Second { // the clock of the node
			one.FinishedAt = one.FinishedAt.Add(behind)
		}
	} else if at, err := time.Parse(time.RFC3339Nano, pod.Annotations[annotationEnd]); err == nil {
		one.FinishedAt = at
	}
	if one.FinishedAt.IsZero() { // a container that a boot has lost has no times
		one.FinishedAt = one.StartedAt
	}
	return one
}

// notFound reports whether a container does not exist.
func notFound(err error) bool { return errors.Is(err, runtime.ErrNotFound) }
