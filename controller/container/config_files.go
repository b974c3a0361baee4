package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/jobs"
)

const (
	configTimeout = 10 * time.Second // for all files before one start
	configMessage = 2000             // bytes of the message that names the files that failed
)

// configJobs is how many containers' config files are applied at once. Large ones take
// seconds of a processor.
const configJobs = 8

// Configs applies config files as jobs: one of a container and of a volume at once. So no
// start of another container waits for large files.
type Configs struct {
	jobs *jobs.Jobs[[]error] // the errors of the files

	mu sync.Mutex
	of map[string]configured // by internal_id
}

// configured is the start whose config files a job applies, or has applied.
type configured struct {
	start string
	done  bool
}

// NewConfigs returns a Configs, whose jobs run while Run does.
func NewConfigs(log *slog.Logger) *Configs {
	return &Configs{of: map[string]configured{}, jobs: jobs.New[[]error](jobs.Options{
		Name: "config files", Limit: func() int { return configJobs }, PerKey: 1, Log: log})}
}

// Run runs the jobs until ctx ends.
func (k *Configs) Run(ctx context.Context) error { return k.jobs.Run(ctx) }

// Source is a controller.Source of the containers whose job has ended or may begin.
func (k *Configs) Source(ctx context.Context, notify func(id string)) error {
	return k.jobs.Source(ctx, notify)
}

// startOf identifies the recorded start of a container, and its spec.
func startOf(c v1.Container) string {
	return fmt.Sprintf("%d/%d", c.Meta.Generation, c.Status.StartRecordedAt.UnixNano())
}

// applied reports whether the config files of a start are applied.
func (k *Configs) applied(id, start string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[id] == configured{start, true}
}

// set records the start of a container's job, and returns the one before.
func (k *Configs) set(id string, now configured) (before configured) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before = k.of[id]
	k.of[id] = now
	return before
}

// forget drops the result of a container that is gone.
func (k *Configs) forget(id string) {
	k.jobs.Cancel(id)
	k.jobs.Forget(id)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, id)
}

// configure sets the values of config_files in the volume as a job, and records the
// condition ConfigFilesApplied when it has ended. A file that fails delays no start.
func (t *task) configure(context.Context) (controller.Result, error) {
	id, spec, start := t.c.Meta.ID, t.c.Spec, startOf(t.c)
	job := t.Configs.jobs.Get(id)
	if job.State == jobs.Ended {
		t.Configs.jobs.Forget(id)
		if before := t.Configs.set(id, configured{start, true}); before.start == start {
			return controller.Result{}, t.recordApplied(job)
		}
		job.State = jobs.None // that was an earlier start
	}
	if job.State == jobs.None {
		work := func(ctx context.Context, report func([]error)) error {
			ctx, cancel := context.WithTimeout(ctx, configTimeout)
			defer cancel()
			report(t.Configure(ctx, spec.VolumeID, spec.ConfigFiles, spec.Env))
			return nil
		}
		t.Configs.set(id, configured{start: start})
		if _, err := t.Configs.jobs.Start(jobs.Request[[]error]{ID: id, Key: spec.VolumeID, Work: work}); err != nil {
			return controller.Result{}, err
		}
	}
	return waitFor(jobs.AskAgain), nil
}

// recordApplied records the result of a job.
func (t *task) recordApplied(job jobs.Job[[]error]) error {
	var failed []string
	if job.Err != nil { // it panicked
		failed = append(failed, "all: "+t.configFailure("", job.Err))
	}
	for i, err := range job.Value {
		if err != nil && i < len(t.c.Spec.ConfigFiles) {
			path := t.c.Spec.ConfigFiles[i].Path
			failed = append(failed, path+": "+t.configFailure(path, err))
		}
	}
	return t.recordConfigFiles(configCondition(failed), failed...)
}

// configCondition returns the condition after the files were tried; failed has the texts of
// those that were not changed.
func configCondition(failed []string) v1.Condition {
	if len(failed) == 0 {
		return v1.Condition{Status: v1.True, Reason: "Applied", Message: "the values of config_files are set"}
	}
	text := "config files that were not changed: " + strings.Join(failed, "; ")
	if len(text) > configMessage {
		text = strings.ToValidUTF8(text[:configMessage], "") + fmt.Sprintf(" … (%d files in all)", len(failed))
	}
	return v1.Condition{Status: v1.False, Reason: "NotApplied", Message: text}
}

// configFailure returns the text for clients of an error. The cause of an unknown one
// is in the log.
func (t *task) configFailure(path string, err error) string {
	var known *v1.Error
	switch {
	case errors.As(err, &known):
		return known.Message
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("not done within %s", configTimeout)
	}
	t.Log.Warn("a configuration file could not be changed", "container", t.c.Meta.ID, "path", path, "err", err)
	return "could not be read or written: the daemon's log has the error"
}

// recordConfigFiles records the condition if it has changed. A change that says which files
// failed is a message too.
func (t *task) recordConfigFiles(want v1.Condition, failed ...string) error {
	now := v1.FindCondition(t.c.Status.Conditions, v1.ConfigFilesApplied)
	if now.Status == want.Status && now.Message == want.Message {
		return nil
	}
	var messages []message
	if len(failed) > 0 {
		messages = append(messages, message{text: want.Message})
	}
	return t.record(func(st *v1.ContainerStatus, at time.Time) {
		setCondition(st, at, v1.ConfigFilesApplied, want.Status, want.Reason, want.Message)
	}, messages...)
}
