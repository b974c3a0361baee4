package container

import (
	"context"
	"sync"
	"time"

	"berth/controller"
	"berth/runtime"
)

// engineWait is the time between two attempts to query an engine that reported an
// exit and may be shutting down.
const engineWait = time.Second

// Instances records which instance of the engine answered last. It determines whether a run
// ended with its engine.
type Instances struct {
	mu       sync.Mutex
	instance string
	asked    time.Time // when the call began that returned it
}

// Instancer identifies the engine over a new connection; see runtime/engine.go.
type Instancer interface {
	Instance(ctx context.Context) (string, error)
}

// query returns the engine's instance. An error means that the engine accepts no
// new connection: it is unreachable or shutting down. Of calls that overlap, the one that
// began last counts: the other may have been answered by the engine before.
func (i *Instances) query(ctx context.Context, e Instancer) (instance string, err error) {
	began := time.Now()
	if instance, err = e.Instance(ctx); err != nil {
		return "", err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !began.Before(i.asked) {
		i.instance, i.asked = instance, began
	}
	return i.instance, nil
}

// last returns the instance that answered last; empty if it is unknown.
func (i *Instances) last() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.instance
}

// Watcher streams the names of containers that changed; see runtime/engine.go.
type Watcher interface {
	Instancer
	Watch(ctx context.Context, listed func([]runtime.Found), notify func(runtime.Name)) error
}

// Watch returns a source of the containers that changed in the engine. It calls
// listed after each complete list; the daemon is ready after the first.
func Watch(e Watcher, i *Instances, listed func()) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		return e.Watch(ctx, func(found []runtime.Found) {
			_, _ = i.query(ctx, e) // an error also ends the stream
			for _, f := range found {
				notify(f.Name.ID)
			}
			listed()
		}, func(n runtime.Name) { notify(n.ID) })
	}
}
