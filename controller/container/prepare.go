package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/jobs"
	"berth/runtime"
	"berth/store"
)

const (
	// preparationsAtOnce is how many volumes are prepared at once. Large config files take seconds of a
	// processor.
	preparationsAtOnce = 8
	// walkKeeps is how long a walk through a volume keeps its permit. One of a million files takes longer,
	// and others begin meanwhile.
	walkKeeps = 5 * time.Second
)

// Preparations make volumes ready for the start of a container, as jobs: one of a container and of a
// volume at once. So no start of another container waits for many files, or for large ones.
type Preparations = jobs.Jobs[prepared]

// prepared is what a job reports.
type prepared struct {
	start    string  // see nextStart
	unowned  string  // why the container cannot write all of its volume; empty: it can
	ownErr   error   // why that is unknown
	fileErrs []error // of the config files
}

// NewPreparations returns Preparations, whose jobs run while Run does.
func NewPreparations(log *slog.Logger) *Preparations {
	return jobs.New[prepared](jobs.Options{Name: "preparation", Limit: func() int { return preparationsAtOnce }, Log: log})
}

// Accounts are the account that a volume is given to, and the accounts of the other containers that use it.
type Accounts struct {
	runtime.Account
	Others []int // uids
}

// nextStart identifies the start that comes next: of the installer, or the recorded one of the server, with its
// spec.
func (t *task) nextStart() string {
	if t.installs() {
		return "install " + t.o.Install.ContainerID
	}
	return fmt.Sprintf("%d/%d", t.c.Meta.Generation, t.c.Status.StartRecordedAt.UnixNano())
}

// preparation returns the job of the container, and whether it has prepared the next start.
func (t *task) preparation() (job jobs.Job[prepared], done bool) {
	job = t.Preparations.Get(t.c.Meta.ID)
	return job, job.State == jobs.Ended && job.Value.start == t.nextStart()
}

// prepareVolume gives the volume to the account of the container that is started next, and sets the values of
// its config files, as a job. What cannot be given or set delays no start.
func (t *task) prepareVolume(ctx context.Context) (controller.Result, error) {
	id, start := t.c.Meta.ID, t.nextStart()
	job, done := t.preparation()
	switch {
	case done: // since the observation
		return controller.Result{}, nil
	case job.State == jobs.Ended:
		t.Preparations.Forget(id) // it was of an earlier start
	case job.State == jobs.Running:
		if job.Value.start != start && job.Value.start != "" { // it is for a start that is no longer requested
			t.Preparations.Cancel(id)
		}
		return waitFor(jobs.AskAgain), nil
	}
	accounts, err := t.accounts(ctx)
	if err != nil {
		return controller.Result{}, err
	}
	volume, files, variables := t.c.Spec.VolumeID, t.c.Spec.ConfigFiles, t.c.Spec.Variables(t.o.Gateway)
	if t.installs() {
		files = nil
	}
	work := func(ctx context.Context, report func(prepared)) error {
		p := prepared{start: start}
		report(p) // if it panics, too
		p.ownErr = t.Preparations.Lend(ctx, walkKeeps, func() (err error) {
			p.unowned, err = t.Volumes.Own(ctx, volume, accounts)
			return err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(files) > 0 {
			bounded, cancel := context.WithTimeout(ctx, configTimeout)
			defer cancel()
			p.fileErrs = t.Volumes.Configure(bounded, volume, files, variables)
		}
		report(p)
		return nil
	}
	_, err = t.Preparations.Start(jobs.Request[prepared]{ID: id, Key: volume, Work: work})
	return waitFor(jobs.AskAgain), err
}

// accounts returns the account of the container that is started next, and those of the other servers on its
// volume. That of a container that does not exist is asked for before its own start.
func (t *task) accounts(ctx context.Context) (a Accounts, err error) {
	name := t.serverName()
	if t.installs() {
		name = t.installerName()
	}
	if a.Account, err = t.Engine.Account(ctx, name); err != nil || a.UID <= 0 { // root writes everything
		return a, err
	}
	for _, id := range store.Containers.IDsBy(t.Store.Read(), t.c.Spec.VolumeID) {
		if err != nil || id == t.c.Meta.ID {
			continue
		}
		var other runtime.Account
		other, err = t.Engine.Account(ctx, serverName(id))
		if errors.Is(err, runtime.ErrNotFound) {
			err = nil
		} else if other.UID > 0 {
			a.Others = append(a.Others, other.UID)
		}
	}
	return a, err
}

// recordPrepared records the conditions VolumeWritable and ConfigFilesApplied before a start.
func (t *task) recordPrepared() error {
	job, _ := t.preparation()
	err := t.recordWritable(job)
	if err != nil || len(t.c.Spec.ConfigFiles) == 0 || t.installs() {
		return err
	}
	return t.recordApplied(job)
}

// recordWritable records whether the container can write its volume, if that has changed.
func (t *task) recordWritable(job jobs.Job[prepared]) error {
	reason := job.Value.unowned
	if err := errors.Join(job.Value.ownErr, job.Err); err != nil {
		t.Log.Warn("a volume could not be given to the user of its container", "container", t.c.Meta.ID, "volume", t.c.Spec.VolumeID, "err", err)
		reason = "the owners of the files in the volume could not be read or changed: the daemon's log has the error"
	}
	before := v1.FindCondition(t.c.Status.Conditions, v1.VolumeWritable)
	switch {
	case reason == before.Message, reason == "" && before.Status != v1.False:
		return nil
	case reason == "":
		return t.amend(func(st *v1.ContainerStatus, now time.Time) {
			setCondition(st, now, condition(v1.VolumeWritable, v1.True, "Writable", "the user of the container can write the volume"))
		})
	}
	return t.amend(func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, condition(v1.VolumeWritable, v1.False, "NotWritable", reason))
	}, message{"NotWritable", reason})
}
