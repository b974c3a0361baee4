package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	core1 "k8s.io/api/core/v1"

	"berth/runtime"
)

// attempts bounds how often a call begins again after somebody else changed the pod.
const attempts = 5

// Create creates a container and does not start it. It adopts a container of the same name
// and spec hash, and first removes one with another hash, unless that runs.
func (e *Engine) Create(ctx context.Context, s runtime.Spec) (id string, err error) {
	err = e.do(ctx, ending, "create", describe(s.Name), func(ctx context.Context) error {
		pod, a, err := e.podOf(ctx, s)
		if err == nil && a != (runtime.Auth{}) {
			err = e.keepCredentials(ctx, pod.Name, a)
		}
		if err != nil {
			return err
		}
		return e.retry(ctx, func() error {
			id, err = e.create(ctx, s, pod)
			return err
		})
	})
	return id, err
}

// Probe returns the error with which the cluster would refuse to create a container. It creates
// none.
func (e *Engine) Probe(ctx context.Context, s runtime.Spec) error {
	return e.do(ctx, quick, "probe", describe(s.Name), func(ctx context.Context) error {
		pod, _, err := e.podOf(ctx, s)
		if err != nil {
			return err
		}
		pod.Name += "-probe" // the container's own is taken
		options := &meta.CreateOptions{DryRun: []string{meta.DryRunAll}}
		return e.client.Post().Namespace(e.cfg.Namespace).Resource("pods").VersionedParams(options, e.parameters).Body(pod).Do(ctx).Error()
	})
}

// Account returns the user and the group of a container's processes: those of its spec, or of
// its image. The engine knows no names, and no groups of users without one.
func (e *Engine) Account(ctx context.Context, n runtime.Name) (a runtime.Account, err error) {
	err = e.do(ctx, quick, "account", describe(n), func(ctx context.Context) error {
		_, r, err := e.get(ctx, e.podName(n))
		if err != nil {
			return err
		}
		user, group, _ := strings.Cut(r.User, ":")
		if a.UID, err = strconv.Atoi(cmp.Or(user, "0")); err != nil {
			a.UID = -1
		}
		a.GID, _ = strconv.Atoi(group)
		return nil
	})
	return a, err
}

// Connect does nothing: a pod cannot be disconnected from its network.
func (e *Engine) Connect(ctx context.Context, n runtime.Name) error {
	_, err := e.Inspect(ctx, n)
	return err
}

// podOf checks a spec, and returns its pod and the credentials for its image.
func (e *Engine) podOf(ctx context.Context, s runtime.Spec) (*core1.Pod, runtime.Auth, error) {
	if err := requireAble(s); err != nil {
		return nil, runtime.Auth{}, err
	}
	image, known := e.images.get(s.Image)
	if !known {
		return nil, image.auth, fmt.Errorf("%w: %s was not resolved since berth started", runtime.ErrImageNotFound, s.Image)
	}
	keeper, err := e.copyKeeper()
	if err != nil {
		return nil, image.auth, err
	}
	pod, err := e.build(s, image, keeper)
	if err != nil {
		return nil, image.auth, err
	}
	if err := requireMounts(s.Mounts); err != nil {
		return nil, image.auth, err
	}
	if e.cfg.Balancer != nil {
		return pod, image.auth, requireOneAddress(s.Ports)
	}
	return pod, image.auth, e.bindToNode(ctx, pod, s.Ports)
}

// retry repeats work while others change the pod.
func (e *Engine) retry(ctx context.Context, work func() error) error {
	for attempt := 1; ; attempt++ {
		err := work()
		if !errors.Is(classify(err), errChanged) || attempt == attempts {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// create creates a pod. The name of a pod is taken until the pod is gone, so it is the lock.
func (e *Engine) create(ctx context.Context, s runtime.Spec, pod *core1.Pod) (id string, err error) {
	err = e.post(ctx, pod)
	if !apierrors.IsAlreadyExists(err) {
		r, _ := e.recordOf(pod)
		return r.ContainerID, err
	}
	old, r, err := e.observe(ctx, pod.Name)
	switch {
	case errors.Is(err, errNotOurs):
		return "", fmt.Errorf("%w: pod %s", runtime.ErrUnmanaged, pod.Name)
	case notFound(err):
		return "", errChanged
	case err != nil:
		return "", err
	case r.SpecHash == s.SpecHash && old.DeletionTimestamp == nil:
		return r.ContainerID, nil
	case !gated(old) && !ended(old):
		return "", fmt.Errorf("a pod of another spec has its name: %w", runtime.ErrRunning)
	}
	if err := e.drop(ctx, old); err != nil {
		return "", err
	}
	return "", errChanged // the name is free
}

// drop removes a pod that has no process. The finalizers go last: a pod that others deleted with
// a grace period, on a node that is off, would stay for ever if its grace period became 0 without
// them.
func (e *Engine) drop(ctx context.Context, pod *core1.Pod) error {
	if err := e.deletePod(ctx, pod, 0); err != nil || len(pod.Finalizers) == 0 {
		return err
	}
	err := e.patch(ctx, pod, "", operation{Op: "remove", Path: "/metadata/finalizers"})
	if notFound(err) {
		return nil
	}
	return err
}

// replace removes a pod that has no process, and creates its successor.
func (e *Engine) replace(ctx context.Context, pod *core1.Pod, r record, started time.Time) (*core1.Pod, error) {
	next, err := successor(pod, r, started)
	if err != nil {
		return nil, err
	}
	if err := e.drop(ctx, pod); err != nil {
		return nil, err
	}
	for {
		err = e.client.Post().Namespace(e.cfg.Namespace).Resource("pods").Body(next).Do(ctx).Into(next)
		if !apierrors.IsAlreadyExists(err) {
			return next, err
		}
		// The pod is gone once the finalizer is; another one of that name is somebody else's.
		if now, _, err := e.get(ctx, pod.Name); err == nil && now.UID != pod.UID {
			return nil, errChanged
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// requireMounts returns ErrMountMissing if a directory does not exist: the kubelet would
// create it, and the server would start without its files.
func requireMounts(mounts []runtime.Mount) error {
	for _, m := range mounts {
		if _, err := os.Stat(m.Source); err != nil {
			return fmt.Errorf("%w: %s", runtime.ErrMountMissing, m.Source)
		}
	}
	return nil
}

// prepare does what a start of a container needs first.
func (e *Engine) prepare(ctx context.Context, pod *core1.Pod, r record) error {
	var mounts []runtime.Mount
	for _, source := range r.Mounts {
		mounts = append(mounts, runtime.Mount{Source: source})
	}
	if err := requireMounts(mounts); err != nil {
		return err
	}
	return e.publish(ctx, pod.Name, r.Ports)
}

// copyKeeper copies the keeper into the claim, once, and returns its folder there. The name
// of the folder is a hash of the program, so that pods of an older berth keep theirs.
func (e *Engine) copyKeeper() (string, error) {
	e.keeperLock.Lock()
	defer e.keeperLock.Unlock()
	if e.keeperFolder != "" {
		return e.keeperFolder, nil
	}
	program, err := os.ReadFile(e.cfg.Keeper)
	if err != nil {
		return "", fmt.Errorf("the keeper: %w", err)
	}
	folder := filepath.Join("keeper", hash(string(program)))
	dir := filepath.Join(e.cfg.Volumes, folder)
	part := filepath.Join(dir, "part")
	err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(part, program, 0o755))
	if err == nil {
		err = os.Rename(part, filepath.Join(dir, filepath.Base(keeperPath)))
	}
	if err != nil {
		return "", fmt.Errorf("copy the keeper: %w", err)
	}
	e.keeperFolder = folder
	return folder, nil
}
