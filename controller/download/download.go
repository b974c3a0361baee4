package download

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

const (
	maxAttempts = 3           // after restarts of berth
	observe     = time.Second // between two records of the progress, and tries for a permit
	kept        = 100         // downloads of a volume that have ended and stay listed
)

// later returns the result for a download that waits.
func later() controller.Result { return controller.Result{Waiting: true, RequeueAfter: observe} }

// Reconciler is the controller.Reconciler of downloads.
type Reconciler struct {
	Store   *store.Store
	Jobs    *Jobs
	Metrics *Metrics
	Log     *slog.Logger
}

// Reconcile takes one step for the download with this id.
func (r *Reconciler) Reconcile(_ context.Context, id string) (controller.Result, error) {
	p, volume, err := r.load(id)
	if errors.Is(err, store.ErrNotFound) {
		r.Jobs.stop(id)
		r.Jobs.forget(id)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	job := r.Jobs.get(id)
	if job.exists && !job.done && (p.Spec.Cancel || volume == gone) {
		r.Jobs.stop(id)
		return later(), nil
	}
	switch {
	case volume == gone:
		r.Jobs.forget(id)
		return controller.Result{}, r.Store.Update(func(tx *store.Tx) error { return store.Pulls.Purge(tx, id) })
	case p.Status.State.Final():
		r.Jobs.forget(id)
		return controller.Result{}, nil
	case job.done && errors.Is(job.err, v1.ErrVolumeRestoring) && !p.Spec.Cancel:
		return r.retry(p)
	case job.done:
		return controller.Result{}, r.finish(p, job)
	case p.Spec.Cancel:
		return controller.Result{}, r.end(p, v1.PullCancelled, "", job)
	case job.exists:
		return controller.Result{RequeueAfter: observe}, r.record(p, stateOf(job), p.Status.Attempts, job)
	case volume == restoring:
		if p.Status.State != v1.PullRunning {
			return later(), nil
		}
		return later(), r.record(p, v1.PullPending, p.Status.Attempts, progress{total: -1})
	}
	return r.start(p)
}

// stateOf returns the state of a download whose job exists.
func stateOf(job progress) v1.PullState {
	if job.paused {
		return v1.PullPending
	}
	return v1.PullRunning
}

// condition is what a download must know of its volume.
type condition int

const (
	present condition = iota
	restoring
	gone // or being deleted
)

// load returns a download, and the condition of its volume.
func (r *Reconciler) load(id string) (p v1.Pull, is condition, err error) {
	err = r.Store.View(func(tx *store.Tx) error {
		if p, err = store.Pulls.Get(tx, id); err != nil {
			return err
		}
		volume, err := store.Volumes.Get(tx, p.Spec.VolumeID)
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && volume.Meta.Deleted:
			is = gone
			return nil
		case err == nil && store.Restoring(tx, p.Spec.VolumeID) != "":
			is = restoring
		}
		return err
	})
	return p, is, err
}

// start records the attempt before it begins: after a crash it is counted.
func (r *Reconciler) start(p v1.Pull) (controller.Result, error) {
	if p.Status.Attempts >= maxAttempts {
		return controller.Result{}, r.end(p, v1.PullFailed, fmt.Sprintf("berth was restarted during %d attempts", maxAttempts), progress{})
	}
	again := p.Status.State == v1.PullRunning
	if !r.Jobs.free(p.Spec.VolumeID) {
		return later(), nil
	}
	if err := r.record(p, v1.PullRunning, p.Status.Attempts+1, progress{total: -1}); err != nil {
		return controller.Result{}, err
	}
	if !r.Jobs.start(p.Meta.ID, p.Spec.VolumeID, p.Spec.URL, p.Spec.Path, p.Spec.Checksum) { // another one took the permit
		return later(), r.record(p, v1.PullPending, p.Status.Attempts, progress{total: -1})
	}
	if again {
		r.Log.Info("a download begins again after a restart", "pull", p.Meta.ID, "volume", p.Spec.VolumeID, "attempt", p.Status.Attempts+1)
	}
	return controller.Result{RequeueAfter: observe}, nil
}

// retry lets a download that a restore of its volume has interrupted wait for the end of
// the restore. The attempt does not count.
func (r *Reconciler) retry(p v1.Pull) (controller.Result, error) {
	if err := r.record(p, v1.PullPending, max(0, p.Status.Attempts-1), progress{total: -1}); err != nil {
		return controller.Result{}, err
	}
	r.Jobs.forget(p.Meta.ID)
	return later(), nil
}

// record records the state and the progress.
func (r *Reconciler) record(p v1.Pull, state v1.PullState, attempts int, now progress) error {
	return r.Store.Update(func(tx *store.Tx) error {
		return setStatus(tx, p, func(s *v1.PullStatus) {
			s.State, s.Attempts, s.Bytes, s.Total = state, attempts, now.bytes, totalOf(now)
		})
	})
}

func totalOf(now progress) *int64 {
	if now.total < 0 {
		return nil
	}
	return &now.total
}

// finish records the result of a job that has ended.
func (r *Reconciler) finish(p v1.Pull, job progress) error {
	switch {
	case job.err == nil:
		return r.end(p, v1.PullCompleted, "", job)
	case p.Spec.Cancel:
		return r.end(p, v1.PullCancelled, "", job)
	case errors.Is(job.err, context.Canceled): // berth stops: it begins again
		return nil
	}
	return r.end(p, v1.PullFailed, textOf(r, p, job.err), job)
}

// textOf returns the text of an error for clients.
func textOf(r *Reconciler, p v1.Pull, err error) string {
	r.Log.Warn("a download failed", "pull", p.Meta.ID, "volume", p.Spec.VolumeID, "err", err)
	var known *v1.Error
	if errors.As(err, &known) {
		return known.Message
	}
	var failed *fs.PathError
	if errors.As(err, &failed) { // its path is one of the host
		return "the file cannot be written: " + failed.Err.Error()
	}
	return err.Error()
}

// end records that a download has ended, and removes the oldest ones of its volume.
func (r *Reconciler) end(p v1.Pull, state v1.PullState, message string, job progress) error {
	id := p.Meta.ID
	err := r.Store.Update(func(tx *store.Tx) error {
		err := setStatus(tx, p, func(s *v1.PullStatus) {
			now := tx.Now()
			s.State, s.Message, s.FinishedAt = state, message, &now
			if job.exists {
				s.Bytes, s.Total = job.bytes, totalOf(job)
			}
		})
		return errors.Join(err, prune(tx, p.Spec.VolumeID))
	})
	if err != nil {
		return err
	}
	r.Jobs.forget(id)
	r.Metrics.ended(state, job.bytes)
	return nil
}

// prune removes the oldest downloads of a volume that have ended, except for the last
// ones.
func prune(tx *store.Tx, volume string) error {
	ended, err := store.ListBy(tx, store.Pulls, volume)
	if err != nil {
		return err
	}
	ended = slices.DeleteFunc(ended, func(p v1.Pull) bool { return !p.Status.State.Final() })
	slices.SortFunc(ended, func(a, b v1.Pull) int {
		return cmp.Or(b.Meta.CreatedAt.Compare(a.Meta.CreatedAt), cmp.Compare(a.Meta.ID, b.Meta.ID))
	})
	for _, p := range ended[min(kept, len(ended)):] {
		if err := store.Pulls.Purge(tx, p.Meta.ID); err != nil {
			return err
		}
	}
	return nil
}
