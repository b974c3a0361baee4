package container

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"berth/controller"
	"berth/runtime"
)

// Orphans removes containers of this store that have no record, such as one
// that a hanging engine made long after it was asked to. Each is reported
// first, and goes after a grace.
//
// A container that was asked for at a revision that the store does not remember
// is none: the store is an older copy, and what it never knew is kept for good.
type Orphans struct {
	Grace time.Duration
	Log   *slog.Logger

	mu    sync.Mutex
	since map[string]time.Time
}

// removeOrphan is the step of Orphans in the metrics.
const removeOrphan = "remove orphan"

// observe is a Reconcile for an id that the store does not know.
func (o *Orphans) observe(ctx context.Context, r *Reconciler, id string) (controller.Result, error) {
	left, found := time.Duration(0), false
	for _, n := range []runtime.Name{serverName(id), installerName(id)} {
		s, err := r.inspect(ctx, n)
		if err != nil {
			return settled, err
		}
		if !exists(s) {
			continue
		}
		if !r.Store.History.Remembers(s.Incarnation, s.Revision) {
			o.Log.Error("a container is newer than the store, which is an older copy: it is kept; remove it by hand if it is not wanted",
				"container", id, "role", n.Role, "container_id", s.ContainerID)
			continue
		}
		found = true
		if left = o.left(id, n); left > 0 {
			continue
		}
		if err := o.remove(ctx, r, n, s); err != nil {
			r.Metrics.StepFailed(removeOrphan)
			return settled, err
		}
	}
	if !found {
		o.forget(id)
	}
	if left > 0 {
		return requeueAfter(left), nil
	}
	return settled, nil
}

// left is the rest of an orphan's grace, which begins with the first look.
func (o *Orphans) left(id string, n runtime.Name) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since == nil {
		o.since = map[string]time.Time{}
	}
	first, seen := o.since[id]
	if !seen {
		first = time.Now()
		o.since[id] = first
		o.Log.Warn("a container has no record, and is removed after a grace", "container", id, "role", n.Role, "grace", o.Grace)
	}
	return o.Grace - time.Since(first)
}

func (o *Orphans) remove(ctx context.Context, r *Reconciler, n runtime.Name, s runtime.State) error {
	if s.Running {
		if err := r.Engine.Kill(ctx, n); err != nil {
			return err
		}
	}
	if err := r.Engine.Remove(ctx, n); err != nil {
		return err
	}
	r.Metrics.Repaired("orphan")
	o.Log.Warn("a container without a record was removed", "container", n.ID, "role", n.Role, "container_id", s.ContainerID)
	return nil
}

func (o *Orphans) forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, id)
}
