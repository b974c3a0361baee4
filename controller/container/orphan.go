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
// that a hanging engine created long after the call. Each is logged first and
// removed after a grace period.
//
// A container whose revision the store does not remember is no orphan: the store
// is an older copy, and the container is kept.
type Orphans struct {
	Grace time.Duration
	Log   *slog.Logger

	mu    sync.Mutex
	since map[string]time.Time
}

// removeOrphan is the step in the metrics.
const removeOrphan = "remove orphan"

// observe reconciles an id that the store does not know.
func (o *Orphans) observe(ctx context.Context, r *Reconciler, id string) (controller.Result, error) {
	left, found := time.Duration(0), false
	for _, n := range []runtime.Name{serverName(id), installerName(id)} {
		s, err := r.inspect(ctx, n)
		if err != nil {
			return controller.Result{}, err
		}
		if !exists(s) {
			continue
		}
		if !r.Store.Incarnations.Remembers(s.Incarnation, s.Revision) {
			o.Log.Error("a container is newer than the store, which is an older copy: it is kept; remove it by hand if it is not needed",
				"container", id, "role", n.Role, "container_id", s.ContainerID)
			continue
		}
		found = true
		if left = o.graceLeft(id, n); left > 0 {
			continue
		}
		if err := o.remove(ctx, r, n, s); err != nil {
			r.Metrics.StepFailed(removeOrphan)
			return controller.Result{}, err
		}
	}
	if !found {
		o.forget(id)
	}
	if left > 0 {
		return controller.Result{RequeueAfter: left}, nil
	}
	return controller.Result{}, nil
}

// graceLeft returns the rest of an orphan's grace period, which begins with the
// first observation.
func (o *Orphans) graceLeft(id string, n runtime.Name) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since == nil {
		o.since = map[string]time.Time{}
	}
	first, seen := o.since[id]
	if !seen {
		first = time.Now()
		o.since[id] = first
		o.Log.Warn("a container has no record and is removed after a grace period", "container", id, "role", n.Role, "grace", o.Grace)
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
