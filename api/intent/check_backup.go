package intent

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	v1 "berth/api/v1"
)

// The limits of backups and their policies.
const (
	maxIgnore         = 256  // patterns
	maxIgnorePattern  = 1024 // bytes
	maxIgnoreBytes    = 16 << 10
	maxQuiesceCommand = 4096 // bytes
	minQuiesceTimeout = time.Second
	maxQuiesceTimeout = 2 * time.Minute // the permit of a job is held meanwhile
	quiesceTimeout    = 30 * time.Second
	minEvery          = 10 * time.Second
	maxEvery          = 365 * 24 * time.Hour
	maxKeep           = 1000
)

// CheckBackup adds every error of a request for a backup to f, and sets defaults. s3 is whether
// the operator has configured S3.
func CheckBackup(f *v1.FieldErrors, spec *v1.BackupRequest, s3 bool) {
	if !v1.IsName(spec.Name) {
		f.Add("name", "must be at most 128 printable characters")
	}
	checkTarget(f, &spec.Target, s3)
	spec.Ignore = checkIgnore(f, spec.Ignore)
	checkQuiesce(f, spec.Quiesce)
}

// CheckPolicy adds every error of a policy's spec to f, and sets defaults. A policy must keep
// fewer backups than a volume may have, or it could make none.
func CheckPolicy(f *v1.FieldErrors, spec *v1.PolicySpec, limits v1.BackupsConfig, s3 bool) {
	if every := time.Duration(spec.Every); every < minEvery || every > maxEvery {
		f.Add("every", "must be between 10s and 365d")
	}
	if most := min(maxKeep, limits.MaxPerVolume-1); spec.Keep < 1 || spec.Keep > most {
		f.Add("keep", "must be between 1 and %d", most)
	}
	checkTarget(f, &spec.Target, s3)
	spec.Ignore = checkIgnore(f, spec.Ignore)
	checkQuiesce(f, spec.Quiesce)
}

func checkTarget(f *v1.FieldErrors, target *v1.Target, s3 bool) {
	if *target == "" {
		*target = v1.TargetLocal
	}
	switch {
	case !slices.Contains(v1.Targets(), *target):
		f.Add("target", "must be local or s3")
	case *target == v1.TargetS3 && !s3:
		f.Add("target", "must be local: backups.s3.endpoint is not configured")
	}
}

func checkIgnore(f *v1.FieldErrors, patterns []string) []string {
	if len(patterns) > maxIgnore {
		f.Add("ignore", "must have at most %d patterns", maxIgnore)
		return patterns
	}
	bytes := 0
	for i, p := range patterns {
		bytes += len(p)
		if len(p) > maxIgnorePattern || !utf8.ValidString(p) || strings.ContainsAny(p, "\x00\n\r") {
			f.Add(fmt.Sprintf("ignore[%d]", i), "must be one line of at most %d bytes of UTF-8", maxIgnorePattern)
		}
	}
	if bytes > maxIgnoreBytes {
		f.Add("ignore", "must have at most %d bytes in all", maxIgnoreBytes)
	}
	if len(patterns) == 0 {
		return nil
	}
	return patterns
}

func checkQuiesce(f *v1.FieldErrors, q *v1.Quiesce) {
	if q == nil {
		return
	}
	checkID(f, "quiesce.container", q.Container)
	checkCommand(f, "quiesce.before", q.Before)
	checkCommand(f, "quiesce.after", q.After)
	if q.WaitFor != "" {
		checkPattern(f, "quiesce.wait_for", q.WaitFor)
	}
	if q.Timeout == 0 {
		q.Timeout = v1.Duration(quiesceTimeout)
	}
	if d := time.Duration(q.Timeout); d < minQuiesceTimeout || d > maxQuiesceTimeout {
		f.Add("quiesce.timeout", "must be between 1s and 2m")
	}
}

func checkCommand(f *v1.FieldErrors, field, command string) {
	if len(command) > maxQuiesceCommand || strings.ContainsRune(command, 0) {
		f.Add(field, "must be at most %d bytes without NUL", maxQuiesceCommand)
	}
}

// CheckRestoreMode adds the error of a restore's mode to f, and sets the default.
func CheckRestoreMode(f *v1.FieldErrors, mode *string) {
	switch *mode {
	case "":
		*mode = v1.RestoreReplace
	case v1.RestoreReplace, v1.RestoreMerge:
	default:
		f.Add("mode", "must be replace or merge")
	}
}
