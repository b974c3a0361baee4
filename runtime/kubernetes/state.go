package kubernetes

import (
	"context"
	"errors"
	"slices"
	"time"

	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/runtime"
)

// Inspect returns the state of n.
func (e *Engine) Inspect(ctx context.Context, n runtime.Name) (s runtime.State, err error) {
	err = e.core.do(ctx, quick, "inspect", describe(n), func(ctx context.Context) error {
		pod, r, err := e.core.get(ctx, e.core.podName(n))
		if err == nil {
			s = state(pod, r)
		}
		return err
	})
	return s, err
}

// List returns the containers of this store, of both roles.
func (e *Engine) List(ctx context.Context) (found []runtime.Found, err error) {
	found, _, err = e.core.list(ctx)
	return found, err
}

// list also returns the version of the list, from which a watch continues.
func (c *core) list(ctx context.Context) (found []runtime.Found, version string, err error) {
	err = c.do(ctx, listed, "list", "containers", func(ctx context.Context) error {
		var list core1.PodList
		err := c.client.Get().Namespace(c.cfg.Namespace).Resource("pods").VersionedParams(c.selected(), c.parameters).Do(ctx).Into(&list)
		version = list.ResourceVersion
		for i := range list.Items {
			if r, ours := c.recordOf(&list.Items[i]); ours {
				found = append(found, runtime.Found{Name: r.name(), ContainerID: r.ContainerID, Mounts: r.Mounts})
			}
		}
		return err
	})
	return found, version, err
}

// selected returns options that select the pods of this store.
func (c *core) selected() *meta.ListOptions {
	return &meta.ListOptions{LabelSelector: labelStore + "=" + hash(c.cfg.StoreID)}
}

func state(pod *core1.Pod, r record) runtime.State {
	s := runtime.State{
		ContainerID: r.ContainerID, ImageID: r.ImageID, SpecHash: r.SpecHash, Revision: r.Revision, Incarnation: r.Incarnation,
		Live: r.Live, TTY: pod.Spec.Containers[0].TTY, StopSignal: r.StopSignal, StopTimeout: r.StopTimeout,
	}
	last := r.Last
	switch {
	case ended(pod) && lastRun(pod) != nil:
		last = lastRun(pod)
	case running(pod):
		s.Running, s.StartedAt = true, startedAt(pod)
		if r.Last != nil {
			s.FinishedAt = r.Last.FinishedAt
		}
		return s
	}
	if last != nil {
		s.StartedAt, s.FinishedAt, s.ExitCode, s.OOMKilled = last.StartedAt, last.FinishedAt, last.ExitCode, last.OOMKilled
	}
	return s
}

// gated reports whether a pod was created and not started.
func gated(pod *core1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g core1.PodSchedulingGate) bool { return g.Name == gate })
}

func running(pod *core1.Pod) bool { return containerState(pod).Running != nil }

// ended reports whether no process of a pod runs or will run.
func ended(pod *core1.Pod) bool {
	return containerState(pod).Terminated != nil || pod.Status.Phase == core1.PodFailed || pod.Status.Phase == core1.PodSucceeded ||
		gone(pod) && !running(pod)
}

// gone reports whether a pod exists only because of the finalizer. A pod that was never
// scheduled is deleted at once, others after the node reported the end of their processes.
func gone(pod *core1.Pod) bool {
	return pod.DeletionTimestamp != nil && (pod.Spec.NodeName == "" || pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0)
}

func containerState(pod *core1.Pod) core1.ContainerState {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == serverContainer {
			return s.State
		}
	}
	return core1.ContainerState{}
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
	one := &run{StartedAt: startedAt(pod), ExitCode: killed}
	if t := containerState(pod).Terminated; t != nil {
		one.FinishedAt, one.ExitCode, one.OOMKilled = t.FinishedAt.Time, int(t.ExitCode), t.Reason == "OOMKilled"
	}
	if one.StartedAt.IsZero() {
		return nil
	}
	if one.FinishedAt.IsZero() { // evicted before its container was created, or its node is gone
		one.FinishedAt = one.StartedAt
	}
	return one
}

// notFound reports whether a container does not exist.
func notFound(err error) bool { return errors.Is(err, runtime.ErrNotFound) }
