package transfer

import (
	"context"
	"errors"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/jobs"
	"berth/store"
)

// arrivals is the controller.Reconciler of arrivals.
type arrivals struct{ Options }

// Reconcile has the image of an arrival pulled. Of one that has ended it removes the archives that belong to no backup, and after a
// long time the record.
func (r *arrivals) Reconcile(ctx context.Context, id string) (controller.Result, error) {
	a, err := store.Arrivals.Get(r.Store.Read(), id)
	if errors.Is(err, store.ErrNotFound) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if a.Spec.Ended != "" {
		r.Images.Forget(id)
		if len(a.Spec.Archives()) > 0 && !a.Status.Cleaned {
			return controller.Result{}, r.clean(ctx, a)
		}
		if wait := v1.ArrivalRetention - r.Store.AgeTime().Sub(a.Spec.EndedAt); wait > 0 {
			return controller.Result{RequeueAfter: wait}, nil
		}
		return controller.Result{}, r.Store.Update(func(tx *store.Tx) error { return store.Arrivals.Purge(tx, id) })
	}
	if a.Status.ImagePresent || a.Status.Refused != "" {
		return controller.Result{}, nil
	}
	present, refused, err := r.Images.Pull(ctx, id, a.Spec.Container)
	if err != nil {
		return controller.Result{}, err
	}
	if !present && refused == nil {
		return controller.Result{Waiting: true, RequeueAfter: jobs.AskAgain}, nil
	}
	return controller.Result{}, r.Store.Update(func(tx *store.Tx) error {
		return store.Arrivals.SetStatus(tx, id, func(s *v1.ArrivalStatus) {
			s.ImagePresent = present
			if refused != nil {
				s.Refused = v1.MessageText("the image is not to be had: " + refused.Error())
			}
		})
	})
}

// cleanTimeout bounds how long a worker waits for the end of a request that sends an archive.
const cleanTimeout = 10 * time.Second

// clean removes the archives of an arrival that has ended which belong to no backup. No other one arrives under their ids before.
func (r *arrivals) clean(ctx context.Context, a v1.Arrival) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	if err := r.Volumes.AwaitChanges(ctx, a.Spec.Container.VolumeID); err != nil { // the last request that sends one ends
		return err
	}
	for _, id := range a.Spec.Archives() {
		_, err := store.Backups.Get(r.Store.Read(), id)
		if errors.Is(err, store.ErrNotFound) {
			err = r.Archives.Delete(ctx, v1.ArchiveKey(id))
		}
		if err != nil {
			return err
		}
	}
	return r.Store.Update(func(tx *store.Tx) error {
		return store.Arrivals.SetStatus(tx, a.Meta.ID, func(s *v1.ArrivalStatus) { s.Cleaned = true })
	})
}
