package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"berth/runtime"
)

// Watch lists, calls listed, and then calls notify for each change of a pod of this store since
// the list, and for each pod of a node that is reached in another way. It returns an error when
// a stream ends. That error says nothing about any container: call Watch again. notify must
// return quickly.
func (e *Engine) Watch(ctx context.Context, listed func([]runtime.Found), notify func(runtime.Name)) error {
	ctx, cancel := context.WithCancel(ctx)
	var lease sync.WaitGroup
	defer lease.Wait()
	defer cancel()
	lease.Go(func() { e.keepLease(ctx) })
	pods, version, err := e.pods(ctx)
	if err != nil {
		return err
	}
	podEvents, err := e.events(ctx, "pods", version)
	if err != nil {
		return watchError(ctx, err)
	}
	defer podEvents.Stop()
	nodes, version, err := e.nodes(ctx)
	if err != nil {
		return err
	}
	nodeEvents, err := e.events(ctx, "nodes", version)
	if err != nil {
		return watchError(ctx, err)
	}
	defer nodeEvents.Stop()

	seen := newPlacement(pods, nodes)
	e.watched.begin(nodes)
	defer e.watched.end()
	listed(found(pods))
	again := time.NewTicker(outputTime / 2)
	defer again.Stop()
	for {
		var event watch.Event
		var open bool
		select {
		case event, open = <-podEvents.ResultChan():
		case event, open = <-nodeEvents.ResultChan():
		case <-again.C: // Inspect replaces those whose output had its time
			for _, n := range seen.leaving() {
				notify(n)
			}
			continue
		}
		if !open {
			return watchError(ctx, errors.New("the stream is closed"))
		}
		switch object := event.Object.(type) {
		case *core1.Pod:
			if r, ours := e.recordOf(object); ours {
				seen.setPod(newOurPod(object, r), event.Type == watch.Deleted)
				notify(r.name())
			}
		case *core1.Node:
			e.watched.set(object, event.Type == watch.Deleted)
			if names, changed := seen.setNode(object, event.Type == watch.Deleted); changed {
				for _, n := range names {
					notify(n)
				}
			}
		default:
			return watchError(ctx, errors.New("the version of the list is too old"))
		}
	}
}

func watchError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("watch: %w: %w", runtime.ErrUnavailable, err)
}

// events returns the changes since a version of this store's pods, or of the nodes.
func (e *Engine) events(ctx context.Context, resource, version string) (watch.Interface, error) {
	request, options := e.api().Get().Resource(resource), &meta.ListOptions{}
	if resource == "pods" {
		request, options = request.Namespace(e.cfg.Namespace), e.selected()
	}
	options.ResourceVersion, options.Watch = version, true
	return request.VersionedParams(options, e.parameters).Watch(ctx)
}

// placement is what Watch remembers to name the containers of a node.
type placement struct {
	pods  map[string]ourPod // by their names
	nodes map[string]reach
}

func newPlacement(pods []ourPod, nodes []core1.Node) *placement {
	p := &placement{pods: map[string]ourPod{}, nodes: map[string]reach{}}
	for _, pod := range pods {
		p.setPod(pod, false)
	}
	for i := range nodes {
		p.setNode(&nodes[i], false)
	}
	return p
}

func (p *placement) setPod(pod ourPod, deleted bool) {
	if deleted {
		delete(p.pods, pod.pod)
		return
	}
	p.pods[pod.pod] = pod
}

// leaving returns the containers whose pods are kept only by the engine.
func (p *placement) leaving() (names []runtime.Name) {
	for _, one := range p.pods {
		if one.leaves {
			names = append(names, one.name)
		}
	}
	return names
}

// setNode reports whether a node is reached in another way than before, and returns the
// containers on it.
func (p *placement) setNode(node *core1.Node, deleted bool) (names []runtime.Name, changed bool) {
	before, now := p.nodes[node.Name], reachOf(node)
	if deleted {
		now = reachOf(nil)
		delete(p.nodes, node.Name)
	} else {
		p.nodes[node.Name] = now
	}
	if before == now {
		return nil, false
	}
	for _, one := range p.pods {
		if one.node == node.Name {
			names = append(names, one.name)
		}
	}
	return names, true
}
