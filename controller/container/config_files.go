package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "berth/api/v1"
)

const (
	configTimeout = 10 * time.Second // for all files before one start
	configMessage = 2000             // bytes of the message that names the files that failed
)

// applyConfigFiles sets the values of config_files in the volume, and records the
// condition ConfigFilesApplied. A file that fails delays no start.
func (t *task) applyConfigFiles(ctx context.Context) error {
	spec := t.c.Spec
	if len(spec.ConfigFiles) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, configTimeout)
	defer cancel()
	var failed []string
	for i, err := range t.Configure(ctx, spec.VolumeID, spec.ConfigFiles, spec.Env) {
		if err != nil {
			failed = append(failed, spec.ConfigFiles[i].Path+": "+t.configFailure(spec.ConfigFiles[i].Path, err))
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
