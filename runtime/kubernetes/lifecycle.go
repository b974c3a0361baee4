package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	core1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"berth/runtime"
)

// Kill sends SIGKILL and returns after the container's exit. It does nothing if the container
// does not run or does not exist. A start in progress is taken back.
func (e *Engine) Kill(ctx context.Context, n runtime.Name) error {
	err := e.do(ctx, ending, "kill", n.String(), func(ctx context.Context) error {
		pod, r, err := e.observe(ctx, e.podName(n))
		switch {
		case err != nil:
			return err
		case gated(pod) || ended(pod):
			return nil
		case !running(pod):
			return e.takeBack(ctx, pod, r)
		}
		return e.kill(ctx, pod)
	})
	if notFound(err) {
		return nil
	}
	return err
}

// kill ends a pod that runs. An exec needs a process in the container: where the container
// has no room for one, the pod is deleted, which loses its log.
func (e *Engine) kill(ctx context.Context, pod *core1.Pod) error {
	if err := e.signal(ctx, pod, "SIGKILL", false); err != nil {
		e.log.Warn("an exec could not kill a container: its pod is deleted", "pod", pod.Name, "err", err)
		return e.end(ctx, pod)
	}
	return e.await(ctx, pod, func(now *core1.Pod) (bool, error) { return now == nil || ended(now), nil })
}

// Remove removes a container that does not run, with its Service and its Secret. A start in
// progress is taken back. It removes what is left of a container that does not exist. Host
// directories that it mounts stay.
func (e *Engine) Remove(ctx context.Context, n runtime.Name) error {
	return e.do(ctx, ending, "remove", n.String(), func(ctx context.Context) error {
		return e.retry(ctx, func() error {
			pod, _, err := e.observe(ctx, e.podName(n))
			switch {
			case notFound(err):
				return e.removeOwned(ctx, e.podName(n))
			case err != nil:
				return err
			case running(pod):
				return runtime.ErrRunning
			}
			if !gated(pod) { // a start in progress
				if err := e.end(ctx, pod); err != nil && !notFound(err) {
					return err
				}
			}
			if err := e.removeOwned(ctx, pod.Name); err != nil { // first: the pod leads to them
				return err
			}
			if err := e.drop(ctx, pod); err != nil {
				return err
			}
			err = e.await(ctx, pod, func(now *core1.Pod) (bool, error) { return now == nil, nil })
			if notFound(err) {
				return nil
			}
			return err
		})
	})
}

// Update changes the limits of a container, running or not. 0 leaves a limit unchanged.
func (e *Engine) Update(ctx context.Context, n runtime.Name, l runtime.Live) error {
	return e.do(ctx, ending, "update", n.String(), func(ctx context.Context) error {
		return e.retry(ctx, func() error {
			pod, r, err := e.observe(ctx, e.podName(n))
			if err != nil {
				return err
			}
			if err := requireLive(l); err != nil {
				return err
			}
			return e.update(ctx, pod, r, l)
		})
	})
}

// update changes the limits in the record, from which the next run takes them, and those of a pod that
// has not ended. A change that its node cannot give now is taken back: otherwise the node would reserve it
// at once, and give no room to others.
func (e *Engine) update(ctx context.Context, pod *core1.Pod, r record, l runtime.Live) error {
	live := rounded(runtime.Live{Memory: cmp.Or(l.Memory, r.Live.Memory), CPU: cmp.Or(l.CPU, r.Live.CPU)})
	if (live.Memory > 0) != (r.Live.Memory > 0) || (live.CPU > 0) != (r.Live.CPU > 0) {
		return fmt.Errorf("%w: a limit cannot be added to a container", runtime.ErrInvalid)
	}
	if !ended(pod) {
		want := keepStorage(e.resources(live), serverOf(pod).Resources)
		err := e.resize(ctx, pod, want)
		if errors.Is(err, runtime.ErrNoRoom) || errors.Is(err, runtime.ErrInvalid) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quick)
			defer cancel()
			return errors.Join(err, e.setResources(ctx, pod, keepStorage(e.resources(r.Live), want)))
		}
		if err != nil {
			return err
		}
	}
	if live == r.Live {
		return nil
	}
	r.Live = live
	text, err := r.text()
	if err != nil {
		return err
	}
	change := []operation{{"replace", "/metadata/annotations/berth.io~1record", text}}
	return e.patch(ctx, pod, "", change...)
}

// resize changes the resources of a pod, and waits until its node has applied them. It returns ErrNoRoom
// if the node cannot do that now.
func (e *Engine) resize(ctx context.Context, pod *core1.Pod, want core1.ResourceRequirements) error {
	if !equality.Semantic.DeepEqual(serverOf(pod).Resources, want) {
		if err := e.setResources(ctx, pod, want); err != nil {
			return err
		}
	}
	return e.await(ctx, pod, func(now *core1.Pod) (bool, error) {
		if now == nil {
			return false, runtime.ErrNotFound
		}
		for _, condition := range now.Status.Conditions {
			if condition.Type != core1.PodResizePending || condition.Status != core1.ConditionTrue ||
				condition.ObservedGeneration != 0 && condition.ObservedGeneration < now.Generation {
				continue // it is about a request of before
			}
			class := runtime.ErrNoRoom
			if condition.Reason == core1.PodReasonInfeasible {
				class = runtime.ErrInvalid
			}
			return false, fmt.Errorf("%w: %s", class, condition.Message)
		}
		if !running(now) {
			return true, nil
		}
		applied := containerStatus(now).Resources
		return applied != nil && applied.Limits.Memory().Equal(*want.Limits.Memory()) && applied.Limits.Cpu().Equal(*want.Limits.Cpu()), nil
	})
}

// setResources requests other resources for the container of a pod.
func (e *Engine) setResources(ctx context.Context, pod *core1.Pod, want core1.ResourceRequirements) error {
	at := fmt.Sprintf("/spec/containers/%d/resources", serverIndex(pod))
	err := e.patch(ctx, pod, "resize", operation{"replace", at, want})
	if err != nil && strings.Contains(err.Error(), "enough allocatable") { // the node is smaller
		return fmt.Errorf("%w: %s", runtime.ErrInvalid, err.Error())
	}
	return err
}

// Unpause does nothing: the engine has no way to pause a container.
func (e *Engine) Unpause(ctx context.Context, n runtime.Name) error {
	_, err := e.Inspect(ctx, n)
	return err
}
