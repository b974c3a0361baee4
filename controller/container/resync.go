package container

import (
	"context"
	"errors"
	"time"

	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// Resync returns a source that makes up for lost signals: in each period it lists the engine's containers
// once, compares them with what is recorded, and names those that differ, those that have a step to take or
// wait, and those without a record. So a container at rest costs no call of its own.
func (r *Reconciler) Resync(period time.Duration) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		for controller.Sleep(ctx, period) {
			found, err := r.Engine.List(ctx)
			if err != nil {
				return err
			}
			listed, servers := map[string]bool{}, map[string]runtime.State{}
			for _, f := range found {
				listed[f.Name.ID] = true
				if f.Name.Role == runtime.Server {
					servers[f.Name.ID] = f.State
				}
			}
			for _, id := range store.Containers.IDs(r.Store.Read()) {
				delete(listed, id)
				if !r.settled(id, servers[id]) {
					notify(id)
				}
			}
			for id := range listed {
				notify(id)
			}
		}
		return nil
	}
}

// settled reports whether a reconcile of a container would change nothing. server is what a list of the engine
// shows; what it does not show counts as it is recorded, since an event or a result of another source reports it.
func (r *Reconciler) settled(id string, server runtime.State) bool {
	t := &task{Reconciler: r, o: Observed{Now: r.Now(), BootID: r.BootID, Engine: r.instances.last(), Server: server}}
	volume, err := t.load(id)
	if err != nil {
		return errors.Is(err, store.ErrNotFound)
	}
	if run := &t.o.Server; exists(server) {
		run.Live = limits(t.c.Spec)
		if run.Running && run.StartedAt.IsZero() && t.c.Status.StartedAt != nil {
			run.StartedAt = *t.c.Status.StartedAt
		}
	}
	t.observePressure(volume)
	return Plan(t.c, t.o).is(Rest) && t.observed() && !underDiskPressure(t.c)
}
