package kubernetes

import (
	"context"
	"errors"
	"fmt"

	core1 "k8s.io/api/core/v1"

	"berth/runtime"
)

// Watch lists, calls listed, and then calls notify for each change of a pod of this store since
// the list. It returns an error when the stream ends. That error says nothing about any
// container: call Watch again. notify must return quickly.
func (e *Engine) Watch(ctx context.Context, listed func([]runtime.Found), notify func(runtime.Name)) error {
	found, version, err := e.core.list(ctx)
	if err != nil {
		return err
	}
	options := e.core.selected()
	options.ResourceVersion, options.Watch = version, true
	events, err := e.core.client.Get().Namespace(e.core.cfg.Namespace).Resource("pods").VersionedParams(options, e.core.parameters).Watch(ctx)
	if err != nil {
		return watchError(ctx, err)
	}
	defer events.Stop()
	listed(found)
	for event := range events.ResultChan() {
		pod, is := event.Object.(*core1.Pod)
		if !is {
			return watchError(ctx, errors.New("the version of the list is too old"))
		}
		if r, ours := e.core.recordOf(pod); ours {
			notify(r.name())
		}
	}
	return watchError(ctx, errors.New("the stream is closed"))
}

func watchError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("watch: %w: %w", runtime.ErrUnavailable, err)
}
