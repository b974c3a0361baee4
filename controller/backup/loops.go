package backup

import (
	"context"

	"github.com/cenkalti/backoff/v4"

	"berth/controller"
	"berth/store"
)

// Run is how loops run.
type Run struct {
	Resync  func(list func() ([]string, error)) controller.Source
	BackOff func() backoff.BackOff
	Metrics *controller.Metrics
}

// The workers of the loops. A restore must not wait behind many backups.
const (
	backupWorkers  = 4
	restoreWorkers = 2
)

// Loops returns the controllers of backups, restores and policies.
func Loops(o Options, run Run) []*controller.Loop {
	shared := newThrottle(func() int64 { return int64(o.Limits().Bandwidth) })
	s := o.Store
	open := newListing(s, store.Restores, isUnfinished).ids
	b, r, p := &backups{o, shared, newSpace(o)}, &restores{o, shared}, &policies{Options: o}
	loop := func(name string, reconciler controller.Reconciler, workers int, requested controller.Source, watch ...controller.Source) *controller.Loop {
		return &controller.Loop{Name: name, Reconciler: reconciler, DesiredState: []controller.Source{requested}, Watch: watch,
			Workers: workers, BackOff: run.BackOff, Log: o.Log, Metrics: run.Metrics}
	}
	return []*controller.Loop{
		loop("backup", b, backupWorkers, store.Backups.Source(s, store.SpecChanged),
			o.Jobs.source(BackingUp, Removing), b.volumesDeleted, run.Resync(newListing(s, store.Backups, needsStep).ids)),
		loop("restore", r, restoreWorkers, store.Restores.Source(s, store.SpecChanged),
			o.Jobs.source(Restoring), r.containersChanged(open), run.Resync(open)),
		loop("backup-policy", p, 1, store.Policies.Source(s, store.SpecChanged),
			p.backupsChanged, run.Resync(store.Policies.Lister(s))),
	}
}

// volumesDeleted is a source of the unfinished backups of volumes that are deleted.
func (r *backups) volumesDeleted(ctx context.Context, notify func(string)) error {
	return store.Changes(store.Volumes, r.Store, store.SpecChanged, store.Purged)(ctx, func(volume string) {
		_ = r.Store.View(func(tx *store.Tx) error { // the resync makes up for an error
			gone, err := isDeleted(tx, volume)
			if err != nil || !gone {
				return err
			}
			for _, id := range store.Backups.IDsBy(tx, volume) {
				notify(id)
			}
			return nil
		})
	})
}

// containersChanged returns a source of the restores of volumes whose containers change.
func (r *restores) containersChanged(unfinished func() ([]string, error)) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		return store.Changes(store.Containers, r.Store, store.StatusChanged, store.Purged)(ctx, func(string) {
			ids, _ := unfinished() // the resync makes up for an error
			for _, id := range ids {
				notify(id)
			}
		})
	}
}

// backupsChanged is a source of the policies whose backups change.
func (r *policies) backupsChanged(ctx context.Context, notify func(string)) error {
	return store.Changes(store.Backups, r.Store, store.StatusChanged)(ctx, func(id string) {
		_ = r.Store.View(func(tx *store.Tx) error { // the resync makes up for an error
			b, err := store.Backups.Get(tx, id)
			if err == nil && b.Spec.Policy && b.Status.State.Finished() {
				notify(b.Spec.VolumeID)
			}
			return err
		})
	})
}
