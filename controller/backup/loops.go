package backup

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/jobs"
	"berth/store"
)

// Options are what the controllers of this package need.
type Options struct {
	Store    *store.Store
	Targets  func(v1.Target) (Target, error) // v1.Error if it is not configured
	Archives Archives
	Console  Console
	Maker    func(tx *store.Tx, token, volume string) error // why a token may not access a volume any more
	// a container of the engine that runs with a volume; "": none
	Busy    func(ctx context.Context, volume string) (container string, err error)
	Free    func(v1.Target) error   // why nothing may be written to a target: its disk is full
	Limits  func() v1.BackupsConfig // Bandwidth, and how many and how large backups may be
	Jobs    *Jobs
	Metrics *Metrics
	Log     *slog.Logger
}

// Report is what a job reports.
type Report struct {
	Progress v1.Progress
	Snapshot v1.Snapshot // of a backup that has completed
	Leftover bool        // the target may have a part of the archive of a backup
}

// Job is a job of this package.
type Job = jobs.Job[Report]

type work = func(ctx context.Context, report func(Report)) error

// Jobs are the jobs of this package.
type Jobs struct {
	archives *jobs.Jobs[Report] // of backups and restores: one of a volume, restores first
	removals *jobs.Jobs[Report] // of archives, by id of the backup: they do not count for the limit of the others
	log      *slog.Logger
}

// The prefixes of the ids of jobs that read or write archives.
const (
	backupJob  = "backup/"
	restoreJob = "restore/"
)

// maxRemovals is how many archives are removed at once from one target, so that one which
// does not answer stops no other.
const maxRemovals = 4

// NewJobs returns the Jobs of up to limit backups and restores at once.
func NewJobs(limit func() int, log *slog.Logger) *Jobs {
	return &Jobs{
		archives: jobs.New[Report](jobs.Options{Name: "backup job", Limit: limit, Log: log}),
		removals: jobs.New[Report](jobs.Options{Name: "removal of an archive",
			Limit: func() int { return maxRemovals * len(v1.Targets()) }, PerKey: maxRemovals, Log: log}),
		log: log,
	}
}

// Run runs jobs until ctx ends. Then it cancels them, and waits for them.
func (j *Jobs) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { _ = controller.Persist(ctx, j.log, "jobs", j.archives.Run) })
	parts.Go(func() { _ = controller.Persist(ctx, j.log, "jobs", j.removals.Run) })
	parts.Wait()
	return nil
}

// awaited returns the result for an object whose job has started, or waits for a permit.
func awaited(started bool) controller.Result {
	if started {
		return controller.Result{Waiting: true} // Source names it when the job has ended
	}
	return controller.Result{Waiting: true, RequeueAfter: jobs.AskAgain}
}

// source returns a source of the backups or restores whose jobs have ended or may begin.
func (j *Jobs) source(prefix string) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		return j.archives.Source(ctx, func(id string) {
			if own, is := strings.CutPrefix(id, prefix); is {
				notify(own)
			}
		})
	}
}

// Run is how loops run.
type Run struct {
	Resync  func(list func() ([]string, error)) controller.Source
	BackOff controller.BackOff
	Metrics *controller.Metrics
}

// The workers of the loops. A restore must not wait behind many backups.
const (
	backupWorkers  = 4
	restoreWorkers = 2
)

// Loops returns the controllers of backups, restores and policies.
func Loops(o Options, run Run) []*controller.Loop {
	shared := controller.NewThrottle(func() int64 { return int64(o.Limits().Bandwidth) })
	s := o.Store
	b, r, p := &backups{o, shared, newSpace(o)}, &restores{o, shared}, &policies{Options: o}
	loop := func(name string, reconciler controller.Reconciler, workers int, requested controller.Source,
		signals ...controller.Source) *controller.Loop {
		return &controller.Loop{Name: name, Reconciler: reconciler, DesiredState: []controller.Source{requested}, Signals: signals,
			Workers: workers, BackOff: run.BackOff, Log: o.Log, Metrics: run.Metrics}
	}
	return []*controller.Loop{
		loop("backup", b, backupWorkers, store.Backups.Source(s, store.SpecChanged),
			o.Jobs.source(backupJob), o.Jobs.removals.Source, run.Resync(store.Backups.Lister(s))),
		loop("restore", r, restoreWorkers, store.Restores.Source(s, store.SpecChanged),
			o.Jobs.source(restoreJob), run.Resync(store.Restores.Lister(s))),
		loop("backup-policy", p, 1, store.Policies.Source(s, store.SpecChanged),
			p.backupsChanged, run.Resync(store.Policies.Lister(s))),
	}
}

// backupsChanged is a source of the policies whose backups change.
func (r *policies) backupsChanged(ctx context.Context, notify func(string)) error {
	return store.Backups.Source(r.Store, store.StatusChanged)(ctx, func(id string) {
		b, err := store.Backups.Get(r.Store.Read(), id) // the resync makes up for an error
		if err == nil && b.Spec.Policy && b.Status.State.Finished() {
			notify(b.Spec.VolumeID)
		}
	})
}
