package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	core1 "k8s.io/api/core/v1"

	"berth/runtime"
)

// attempts bounds how often a call begins again after somebody else changed the pod.
const attempts = 5

// Create creates a container and does not start it. It adopts a container of the same name
// and spec hash, and first removes one with another hash, unless that runs.
func (e *Engine) Create(ctx context.Context, s runtime.Spec) (id string, err error) {
	err = e.do(ctx, ending, "create", s.Name.String(), func(ctx context.Context) error {
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
	return e.do(ctx, quick, "probe", s.Name.String(), func(ctx context.Context) error {
		pod, _, err := e.podOf(ctx, s)
		if err != nil {
			return err
		}
		return e.requireAccepted(ctx, pod)
	})
}

// requireAccepted returns the error with which the cluster would refuse to create a pod.
func (e *Engine) requireAccepted(ctx context.Context, pod *core1.Pod) error {
	pod = pod.DeepCopy()
	pod.Name += "-probe" // the container's own is taken
	options := &meta.CreateOptions{DryRun: []string{meta.DryRunAll}}
	err := e.api().Post().Namespace(e.cfg.Namespace).Resource("pods").VersionedParams(options, e.parameters).Body(pod).Do(ctx).Error()
	if err != nil && strings.Contains(err.Error(), "does not support dry run") { // a webhook, which is asked later then
		return nil
	}
	return err
}

// Account returns the user and the group of a container's processes: those of its last run, which the node has
// reported, else those of its spec, or of its image. Before the first run the engine knows no names but root, and
// no groups of users without one.
func (e *Engine) Account(ctx context.Context, n runtime.Name) (a runtime.Account, err error) {
	err = e.do(ctx, quick, "account", n.String(), func(ctx context.Context) error {
		pod, r, err := e.get(ctx, e.podName(n))
		if err == nil {
			a = accountOf(pod, r.User)
		}
		return err
	})
	return a, err
}

func accountOf(pod *core1.Pod, user string) runtime.Account {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == serverContainer && s.User != nil && s.User.Linux != nil {
			return runtime.Account{UID: int(s.User.Linux.UID), GID: int(s.User.Linux.GID)}
		}
	}
	user, group, _ := strings.Cut(user, ":")
	uid, err := accountNumber(cmp.Or(user, "0"))
	if err != nil {
		uid = -1
	}
	gid, _ := accountNumber(group)
	return runtime.Account{UID: int(uid), GID: int(gid)}
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
	if err := requireMounts(sources(s.Mounts)); err != nil {
		return nil, image.auth, err
	}
	folder, err := e.keeper.Folder(e.cfg.Keeper, e.storageOf(sources(s.Mounts)).dir)
	if err != nil {
		return nil, image.auth, err
	}
	pod, err := e.build(s, image, folder)
	if err != nil {
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
		if err := runtime.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
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
	if err := e.requireAccepted(ctx, pod); err != nil {
		return "", err
	}
	if err := e.drop(ctx, old); err != nil {
		return "", err
	}
	return "", errChanged // the name is free
}

// drop removes a pod that has no process. The finalizer goes last: a pod that others deleted with
// a grace period, on a node that is off, would stay for ever if its grace period became 0 without
// it. Finalizers of others stay, and with them the pod.
func (e *Engine) drop(ctx context.Context, pod *core1.Pod) error {
	if err := e.deletePod(ctx, pod, 0); err != nil || !slices.Contains(pod.Finalizers, finalizer) {
		return err
	}
	body := fmt.Appendf(nil, `{"metadata": {"uid": %q, "$deleteFromPrimitiveList/finalizers": [%q]}}`, pod.UID, finalizer)
	patch := e.api().Patch(types.StrategicMergePatchType).Namespace(e.cfg.Namespace).Resource("pods").Name(pod.Name)
	err := classify(patch.Body(body).Do(ctx).Error())
	if notFound(err) {
		return nil
	}
	return err
}

// replace removes a pod that has no process, and creates its successor. The cluster must accept that
// first: with the pod the record would go, and with it the digest of the image and the last exit.
func (e *Engine) replace(ctx context.Context, pod *core1.Pod, r record, started time.Time) (*core1.Pod, error) {
	next, err := e.successor(pod, r, started)
	if err == nil && e.cfg.Balancer == nil {
		err = e.bindToNode(ctx, next, portsOf(next, r))
	}
	if err == nil {
		err = e.requireAccepted(ctx, next)
	}
	if err != nil {
		return nil, err
	}
	if err := e.drop(ctx, pod); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	for {
		err = e.api().Post().Namespace(e.cfg.Namespace).Resource("pods").Body(next).Do(ctx).Into(next)
		if !apierrors.IsAlreadyExists(err) {
			return next, err
		}
		// The pod is gone once the finalizer is; another one of that name is somebody else's.
		if now, _, err := e.get(ctx, pod.Name); err == nil && now.UID != pod.UID {
			return nil, errChanged
		}
		if runtime.Sleep(limited, 50*time.Millisecond) != nil {
			return nil, fmt.Errorf("%w: pod %s is deleted and still there: another controller has a finalizer on it; remove that finalizer",
				runtime.ErrUnavailable, pod.Name)
		}
	}
}

// portsOf returns the ports that the node of a pod publishes, with the addresses of the spec.
func portsOf(pod *core1.Pod, r record) (ports []runtime.Port) {
	if len(serverOf(pod).Ports) == len(r.Ports) {
		return r.Ports
	}
	for _, p := range serverOf(pod).Ports {
		ports = append(ports, runtime.Port{IP: p.HostIP, Port: int(p.HostPort), ContainerPort: int(p.ContainerPort),
			Protocol: strings.ToLower(string(p.Protocol))})
	}
	return ports
}

// requireMounts returns ErrMountMissing if a directory does not exist: the kubelet would
// create it, and the server would start without its files.
func requireMounts(sources []string) error {
	for _, source := range sources {
		if _, err := os.Stat(source); err != nil {
			return fmt.Errorf("%w: %s", runtime.ErrMountMissing, source)
		}
	}
	return nil
}

// prepare does what a start of a container needs first.
func (e *Engine) prepare(ctx context.Context, pod *core1.Pod, r record) error {
	if err := requireMounts(r.Mounts); err != nil {
		return err
	}
	if _, err := e.keeper.Folder(e.cfg.Keeper, e.storageOf(r.Mounts).dir); err != nil {
		return err
	}
	if err := e.refreshCredentials(ctx, pod.Name, r); err != nil {
		return err
	}
	if len(serverOf(pod).Ports) > 0 { // its node publishes them
		return nil
	}
	return e.publish(ctx, pod.Name, r.Ports)
}

// refreshCredentials stores the configured credentials of a container's image, unless they are those that
// this process has stored last: passwords are changed, and those of some registries expire.
func (e *Engine) refreshCredentials(ctx context.Context, pod string, r record) error {
	if r.Registry == "" || e.cfg.Auth == nil {
		return nil
	}
	a := e.cfg.Auth(r.Registry)
	if last, known := e.credentials.Load(pod); a == (runtime.Auth{}) || known && last == a {
		return nil
	}
	return e.keepCredentials(ctx, pod, a)
}
