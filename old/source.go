package container

import (
	"context"
	"time"

	"berth/controller"
	"berth/runtime"
)

// Watcher streams the names of containers that changed; see runtime/engine.go.
type Watcher interface {
	Instancer
	Watch(ctx context.Context, listed func([]runtime.Found), notify func(runtime.Name)) error
}

// Watch returns a source of the containers that changed in the engine. It calls
// listed after each complete list; the daemon is ready after the first. The time
// between the end of a stream and the next list is recorded in o.
func Watch(e Watcher, o *Outage, listed func()) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		defer func() {
			if ctx.Err() == nil { // otherwise berth shuts down, not the engine
				o.begin(time.Now())
			}
		}()
		return e.Watch(ctx, func(found []runtime.Found) {
			_, _ = o.query(ctx, e) // an error also ends the stream
			o.end(time.Now())
			for _, f := range found {
				notify(f.Name.ID)
			}
			listed()
		}, func(n runtime.Name) { notify(n.ID) })
	}
}
