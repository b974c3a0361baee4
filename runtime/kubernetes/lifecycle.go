package kubernetes

import (
	"cmp"
	"context"
	"fmt"

	core1 "k8s.io/api/core/v1"

	"berth/runtime"
)

// Kill sends SIGKILL and returns after the container's exit. It does nothing if the container
// does not run or does not exist. A start in progress is taken back.
func (e *Engine) Kill(ctx context.Context, n runtime.Name) error {
	err := e.do(ctx, ending, "kill", describe(n), func(ctx context.Context) error {
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
	return e.do(ctx, ending, "remove", describe(n), func(ctx context.Context) error {
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
	return e.do(ctx, ending, "update", describe(n), func(ctx context.Context) error {
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

func (e *Engine) update(ctx context.Context, pod *core1.Pod, r record, l runtime.Live) error {
	live := rounded(runtime.Live{Memory: cmp.Or(l.Memory, r.Live.Memory), CPU: cmp.Or(l.CPU, r.Live.CPU)})
	if live == r.Live {
		return nil
	}
	if (live.Memory > 0) != (r.Live.Memory > 0) || (live.CPU > 0) != (r.Live.CPU > 0) {
		return fmt.Errorf("%w: a limit cannot be added to a container", runtime.ErrInvalid)
	}
	if !ended(pod) {
		want := e.resources(live)
		now := pod.Spec.Containers[0].Resources // a resize can change nothing else
		for name, limit := range now.Limits {
			if name == core1.ResourceEphemeralStorage {
				want.Limits[name], want.Requests[name] = limit, now.Requests[name]
			}
		}
		if err := e.patch(ctx, pod, "resize", operation{"replace", "/spec/containers/0/resources", want}); err != nil {
			return err
		}
		if err := e.awaitResize(ctx, pod, want); err != nil {
			return err
		}
	}
	r.Live = live
	text, err := r.text()
	if err != nil {
		return err
	}
	change := []operation{{"replace", "/metadata/annotations/berth.io~1record", text}}
	return e.patch(ctx, pod, "", change...)
}

// awaitResize waits until the node has applied new limits to a pod that runs.
func (e *Engine) awaitResize(ctx context.Context, pod *core1.Pod, want core1.ResourceRequirements) error {
	return e.await(ctx, pod, func(now *core1.Pod) (bool, error) {
		if now == nil {
			return false, runtime.ErrNotFound
		}
		for _, condition := range now.Status.Conditions {
			if condition.Type == core1.PodResizePending && condition.Reason == core1.PodReasonInfeasible {
				return false, fmt.Errorf("%w: %s", runtime.ErrInvalid, condition.Message)
			}
		}
		if !running(now) {
			return true, nil
		}
		applied := now.Status.ContainerStatuses[0].Resources
		return applied != nil && applied.Limits.Memory().Equal(*want.Limits.Memory()) && applied.Limits.Cpu().Equal(*want.Limits.Cpu()), nil
	})
}

// Unpause does nothing: the engine has no way to pause a container.
func (e *Engine) Unpause(ctx context.Context, n runtime.Name) error {
	_, err := e.Inspect(ctx, n)
	return err
}
