package container

import (
	"context"
	"time"

	"berth/controller"
	"berth/runtime"
)

// Watcher streams hints about containers that changed; see runtime/engine.go.
type Watcher interface {
	Instancer
	Watch(ctx context.Context, listed func([]runtime.Found), notify func(runtime.Name)) error
}

// Watch is a source of what happens in the engine. It calls listed after each
// complete list, the first of which makes the daemon ready.
//
// The time between the end of a stream and the next list is kept in o.
func Watch(e Watcher, o *Outage, listed func()) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		defer func() {
			if ctx.Err() == nil { // berth's own end is none of the engine's
				o.begin(time.Now())
			}
		}()
		return e.Watch(ctx, func(found []runtime.Found) {
			_, _ = o.ask(ctx, e) // an engine that is gone again ends the stream
			o.end(time.Now())
			for _, f := range found {
				notify(f.Name.ID)
			}
			listed()
		}, func(n runtime.Name) { notify(n.ID) })
	}
}
