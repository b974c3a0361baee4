package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
type Configs = jobs.Jobs[configured]

// configured is what a job reports.
type configured struct {
	start string  // see startOf
	errs  []error // of the files
}

// NewConfigs returns a Configs, whose jobs run while Run does.
func NewConfigs(log *slog.Logger) *Configs {
	return jobs.New[configured](jobs.Options{Name: "config files", Limit: func() int { return configJobs }, Log: log})
}

// startOf identifies the recorded start of a container, and its spec.
func startOf(c v1.Container) string {
	return fmt.Sprintf("%d/%d", c.Meta.Generation, c.Status.StartRecordedAt.UnixNano())
}

// configured returns the job of the container's config files, and whether it has applied those of the
// recorded start.
func (t *task) configured() (job jobs.Job[configured], applied bool) {
	job = t.Configs.Get(t.c.Meta.ID)
	return job, job.State == jobs.Ended && job.Value.start == startOf(t.c)
}

// configure sets the values of config_files in the volume as a job. A file that fails delays no start.
func (t *task) configure(context.Context) (controller.Result, error) {
	id, spec, start := t.c.Meta.ID, t.c.Spec, startOf(t.c)
	job, applied := t.configured()
	if applied {
		return controller.Result{}, nil // since the observation
	}
	if job.State == jobs.Ended {
		t.Configs.Forget(id) // it was of an earlier start
	}
	work := func(ctx context.Context, report func(configured)) error {
		ctx, cancel := context.WithTimeout(ctx, configTimeout)
		defer cancel()
		report(configured{start: start}) // if it panics, too
		report(configured{start, t.Configure(ctx, spec.VolumeID, spec.ConfigFiles, spec.Env)})
		return nil
	}
	_, err := t.Configs.Start(jobs.Request[configured]{ID: id, Key: spec.VolumeID, Work: work})
	return waitFor(jobs.AskAgain), err
}

// recordApplied records the condition ConfigFilesApplied before a start.
func (t *task) recordApplied() error {
	if len(t.c.Spec.ConfigFiles) == 0 {
		return nil
	}
	job, _ := t.configured()
	var failed []string
	if job.Err != nil { // it panicked
		failed = append(failed, "all: "+t.configFailure("", job.Err))
	}
	for i, err := range job.Value.errs {
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
