package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	core1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"berth/runtime"
)

// The time limits of calls.
const (
	quick  = 30 * time.Second // some requests in a row, see callLimit
	listed = 60 * time.Second
	ending = 60 * time.Second // a call that waits for an exit
)

// do makes calls within a time limit, and names them in their error.
func (e *Engine) do(ctx context.Context, limit time.Duration, call, object string, work func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	err := e.hold(limited)
	if err == nil {
		err = work(limited)
	}
	err = classify(err)
	if ctx.Err() == nil { // otherwise the end says nothing about the cluster
		e.requests.WithLabelValues(call, resultOf(err)).Observe(time.Since(began).Seconds())
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case limited.Err() != nil && !errors.Is(err, runtime.ErrInputFull):
		err = fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	return &runtime.CallError{Call: call, Object: object, Err: err}
}

// classes are the errors of package runtime that the engine returns itself.
var classes = []error{
	runtime.ErrNotFound, runtime.ErrImageNotFound, runtime.ErrDenied, runtime.ErrUnavailable, runtime.ErrPortTaken,
	runtime.ErrNoAddress, runtime.ErrBadCommand, runtime.ErrMountMissing, runtime.ErrInvalid, runtime.ErrUnmanaged,
	runtime.ErrInputFull, runtime.ErrNotRunning, runtime.ErrRunning, runtime.ErrStarting, runtime.ErrNoRoom, runtime.ErrLost,
	errChanged, errNoClass, errClaim, context.Canceled,
}

// errChanged means that a pod is not the one that the call was about: it was changed or
// replaced since.
var errChanged = errors.New("the pod changed")

// errNoClass means that the cluster lacks a RuntimeClass or a PriorityClass. The call is repeated: an operator may create it.
var errNoClass = errors.New("the cluster lacks a class of the placement; create it there, or change the container's placement")

// errClaim means that no node can mount a claim with volumes, whatever room it has.
var errClaim = errors.New("a claim with volumes is missing or not bound; see kubectl describe pvc: also its StorageClass may be missing")

// classify wraps an error of the client in one of package runtime. An answer other than a
// refusal says nothing about the container.
func classify(err error) error {
	if err == nil {
		return nil
	}
	for _, class := range classes {
		if errors.Is(err, class) {
			return err
		}
	}
	var class error
	switch {
	case apierrors.IsNotFound(err):
		class = runtime.ErrNotFound
	case apierrors.IsConflict(err):
		class = errChanged
	case apierrors.IsForbidden(err):
		class = forbidden(err.Error())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		class = runtime.ErrInvalid
	default:
		class = runtime.ErrUnavailable
	}
	return fmt.Errorf("%w: %w", class, err)
}

// forbidden classifies the text of a refusal: there is no code. Only what is about the spec is final. A
// quota has room again once others need less; a permission that is missing and a namespace that is being
// deleted are the operator's to change.
func forbidden(text string) error {
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case has("exceeded quota"):
		return runtime.ErrNoRoom
	case has("RuntimeClass") && has("not found"), has("no PriorityClass with name"):
		return errNoClass
	case has("violates PodSecurity"), has("denied the request"), has("must specify"), // a quota that wants limits
		has("must support resize"): // of a claim
		return runtime.ErrInvalid
	}
	return runtime.ErrUnavailable
}

// resultOf returns the result of a call for the metric.
func resultOf(err error) string {
	switch {
	case err == nil, errors.Is(err, runtime.ErrNotFound), errors.Is(err, runtime.ErrNotRunning):
		return "ok"
	case errors.Is(err, runtime.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return "unavailable"
	}
	return "refused"
}

func (e *Engine) namespaceUID(ctx context.Context) (string, error) {
	var ns core1.Namespace
	err := e.api().Get().Resource("namespaces").Name(e.cfg.Namespace).Do(ctx).Into(&ns)
	return string(ns.UID), err
}

// get returns a pod of this store. One of another store is not found.
func (e *Engine) get(ctx context.Context, name string) (*core1.Pod, record, error) {
	pod := &core1.Pod{}
	if err := e.api().Get().Namespace(e.cfg.Namespace).Resource("pods").Name(name).Do(ctx).Into(pod); err != nil {
		return nil, record{}, classify(err)
	}
	r, ours := e.recordOf(pod)
	if !ours {
		return nil, r, errNotOurs
	}
	return pod, r, nil
}

func (e *Engine) post(ctx context.Context, pod *core1.Pod) error {
	return e.api().Post().Namespace(e.cfg.Namespace).Resource("pods").Body(pod).Do(ctx).Error()
}

// patch changes a pod with operations of a JSON patch. It returns errChanged if the pod of that
// name is another one by now.
func (e *Engine) patch(ctx context.Context, pod *core1.Pod, subresource string, operations ...operation) error {
	body, err := json.Marshal(append([]operation{{"test", "/metadata/uid", pod.UID}}, operations...))
	if err != nil {
		return err
	}
	request := e.api().Patch(types.JSONPatchType).Namespace(e.cfg.Namespace).Resource("pods").Name(pod.Name)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	return classify(request.Body(body).Do(ctx).Error())
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// deletePod requests the deletion of a pod.
func (e *Engine) deletePod(ctx context.Context, pod *core1.Pod, grace int64) error {
	options := &meta.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: &meta.Preconditions{UID: &pod.UID}}
	err := e.api().Delete().Namespace(e.cfg.Namespace).Resource("pods").Name(pod.Name).Body(options).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// await calls done with a pod, and again after each change, until done returns true or an
// error. The pod is nil once it does not exist, or is another one.
func (e *Engine) await(ctx context.Context, pod *core1.Pod, done func(*core1.Pod) (bool, error)) error {
	options := meta.ListOptions{FieldSelector: "metadata.name=" + pod.Name}
	for {
		var list core1.PodList
		err := e.api().Get().Namespace(e.cfg.Namespace).Resource("pods").VersionedParams(&options, e.parameters).Do(ctx).Into(&list)
		if err != nil {
			return err
		}
		var current *core1.Pod
		if len(list.Items) == 1 && list.Items[0].UID == pod.UID {
			current = &list.Items[0]
		}
		if ended, err := done(current); ended || err != nil {
			return err
		}
		if current == nil {
			return runtime.ErrNotFound
		}
		ended, err := e.awaitEvent(ctx, list.ResourceVersion, options, done)
		if ended || err != nil {
			return err
		}
	}
}

// awaitEvent calls done with each version of a pod after a version, until the stream ends.
func (e *Engine) awaitEvent(ctx context.Context, version string, options meta.ListOptions,
	done func(*core1.Pod) (bool, error)) (bool, error) {
	options.ResourceVersion, options.Watch = version, true
	events, err := e.api().Get().Namespace(e.cfg.Namespace).Resource("pods").VersionedParams(&options, e.parameters).Watch(ctx)
	if err != nil {
		return false, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		pod, is := event.Object.(*core1.Pod)
		switch {
		case !is: // the version is too old
			return false, nil
		case event.Type == watch.Deleted:
			pod = nil
		}
		if ended, err := done(pod); ended || err != nil || pod == nil {
			return ended, err
		}
	}
	return false, ctx.Err()
}
