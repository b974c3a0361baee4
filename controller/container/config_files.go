package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/controller/jobs"
)

const (
	configTimeout = 10 * time.Second // for all files before one start
	configMessage = 450              // bytes of the message that names the files that failed
)

// recordApplied records the condition ConfigFilesApplied before a start.
func (t *task) recordApplied(job jobs.Job[prepared]) error {
	var failed []string
	if job.Err != nil { // it panicked
		failed = append(failed, "all: "+t.configFailure("", job.Err))
	}
	for i, err := range job.Value.fileErrs {
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
	text := v1.ClippedText("config files that were not changed: "+strings.Join(failed, "; "), configMessage)
	if strings.HasSuffix(text, "…") {
		text += fmt.Sprintf(" (%d files in all)", len(failed))
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
		setCondition(st, at, condition(v1.ConfigFilesApplied, want.Status, want.Reason, want.Message))
	}, messages...)
}
