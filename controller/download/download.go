package download

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/jobs"
	"berth/store"
)

const (
	maxRunning   = 8           // at once
	maxPerVolume = 2           // of one volume at once
	maxAttempts  = 3           // after restarts of berth
	period       = time.Second // between two records of the progress, and two observations of a volume that is restored
	kept         = 100         // downloads of a volume that have ended and stay listed
)

// Fetch carries out a download, until ctx ends or its own time is over. It calls
// progress with the bytes received and the announced total; -1 is unknown. Its errors are
// texts for clients.
type Fetch func(ctx context.Context, spec v1.PullSpec, progress func(bytes, total int64)) error

// Progress is how far a download is.
type Progress struct{ bytes, total int64 }

// unknown is the progress of a download that has not begun.
var unknown = Progress{total: -1}

// NewJobs returns the Jobs of downloads.
func NewJobs(log *slog.Logger) *jobs.Jobs[Progress] {
	return jobs.New[Progress](jobs.Options{Name: "download", Limit: func() int { return maxRunning }, PerKey: maxPerVolume, Log: log})
}

// Reconciler is the controller.Reconciler of downloads.
type Reconciler struct {
	Store   *store.Store
	Fetch   Fetch
	Jobs    *jobs.Jobs[Progress]
	Metrics *Metrics
	Log     *slog.Logger
}

// Reconcile takes one step for the download with this id.
func (r *Reconciler) Reconcile(_ context.Context, id string) (controller.Result, error) {
	p, volume, err := r.load(id)
	if errors.Is(err, store.ErrNotFound) {
		r.Jobs.Cancel(id)
		r.Jobs.Forget(id)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	job := r.Jobs.Get(id)
	switch {
	case job.State == jobs.Running && (p.Spec.Cancel || volume == gone):
		r.Jobs.Cancel(id) // Jobs names it when it has ended
		return controller.Result{Waiting: true}, nil
	case volume == gone:
		r.Jobs.Forget(id)
		return controller.Result{}, r.Store.Update(func(tx *store.Tx) error { return store.Pulls.Purge(tx, id) })
	case p.Status.State.Final():
		r.Jobs.Forget(id)
		return controller.Result{}, nil
	case job.State == jobs.Ended && (errors.Is(job.Err, v1.ErrVolumeRestoring) || errors.Is(job.Err, v1.ErrTransferring)) && !p.Spec.Cancel:
		return r.retry(p)
	case job.State == jobs.Ended:
		return controller.Result{}, r.finish(p, job)
	case p.Spec.Cancel:
		return controller.Result{}, r.end(p, v1.PullCancelled, "", nil)
	case job.State == jobs.Running:
		return controller.Result{RequeueAfter: period}, r.record(p, v1.PullRunning, p.Status.Attempts, job.Value)
	case volume == restoring:
		return r.awaitRestore(p)
	}
	return r.start(p)
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
	tx := r.Store.Read()
	if p, err = store.Pulls.Get(tx, id); err != nil {
		return p, present, err
	}
	volume, err := store.Volumes.Get(tx, p.Spec.VolumeID)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && volume.Meta.Deleted:
		return p, gone, nil
	case err == nil && store.Restoring(tx, p.Spec.VolumeID) != "":
		is = restoring
	}
	return p, is, err
}

// start starts a download if there is a permit. The attempt is recorded first: after a
// crash it is counted.
func (r *Reconciler) start(p v1.Pull) (controller.Result, error) {
	if p.Status.Attempts >= maxAttempts {
		return controller.Result{}, r.end(p, v1.PullFailed,
			fmt.Sprintf("berth was restarted during %d attempts; if the file is there, it is whole", maxAttempts), nil)
	}
	started, err := r.Jobs.Start(jobs.Request[Progress]{
		ID: p.Meta.ID, Key: p.Spec.VolumeID,
		Record: func() error { return r.record(p, v1.PullRunning, p.Status.Attempts+1, unknown) },
		Work: func(ctx context.Context, report func(Progress)) error {
			report(unknown)
			return r.Fetch(r.deny(ctx, p.Spec), p.Spec, func(bytes, total int64) { report(Progress{bytes, total}) })
		},
	})
	if err != nil || !started {
		return controller.Result{Waiting: true, RequeueAfter: jobs.AskAgain}, err
	}
	if p.Status.State == v1.PullRunning {
		r.Log.Info("a download begins again after a restart", "pull", p.Meta.ID, "volume", p.Spec.VolumeID, "attempt", p.Status.Attempts+1)
	}
	return controller.Result{RequeueAfter: period}, nil
}

// awaitRestore lets a download wait for the end of a restore of its volume. It is not
// queued for a permit meanwhile.
func (r *Reconciler) awaitRestore(p v1.Pull) (controller.Result, error) {
	r.Jobs.Forget(p.Meta.ID)
	var err error
	if p.Status.State == v1.PullRunning {
		err = r.record(p, v1.PullPending, p.Status.Attempts, unknown)
	}
	return controller.Result{Waiting: true, RequeueAfter: period}, err
}

// retry lets a download that a restore of its volume has interrupted wait for the end of
// the restore. The attempt does not count.
func (r *Reconciler) retry(p v1.Pull) (controller.Result, error) {
	if err := r.record(p, v1.PullPending, max(0, p.Status.Attempts-1), unknown); err != nil {
		return controller.Result{}, err
	}
	r.Jobs.Forget(p.Meta.ID)
	return controller.Result{Waiting: true, RequeueAfter: period}, nil
}

// finish records the result of a job that has ended.
func (r *Reconciler) finish(p v1.Pull, job jobs.Job[Progress]) error {
	switch {
	case job.Err == nil:
		return r.end(p, v1.PullCompleted, "", &job.Value)
	case p.Spec.Cancel:
		return r.end(p, v1.PullCancelled, "", &job.Value)
	}
	r.Log.Warn("a download failed", "pull", p.Meta.ID, "volume", p.Spec.VolumeID, "err", job.Err)
	return r.end(p, v1.PullFailed, textOf(job.Err), &job.Value)
}

// textOf returns the text of an error for clients.
func textOf(err error) string {
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

// deny returns a context whose operations respect the denied_files of the volume's containers, if they
// apply to who requested the download.
func (r *Reconciler) deny(ctx context.Context, spec v1.PullSpec) context.Context {
	if !spec.Limited {
		return ctx
	}
	return v1.WithDenied(ctx, store.DeniedFiles(r.Store.Read(), spec.VolumeID))
}
