package intent

import (
	"fmt"
	"path"
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
	maxQuiesceTimeout = 2 * time.Minute // the job waits for the line meanwhile
	quiesceTimeout    = 30 * time.Second
	minEvery          = 10 * time.Second
	maxEvery          = 365 * 24 * time.Hour
	maxKeep           = 1000

	maxRestorePaths     = 256
	maxRestorePathBytes = 64 << 10
)

// CheckBackup adds every error of a request for a backup to f, and sets defaults. has reports
// whether the operator has configured a target.
func CheckBackup(f *v1.FieldErrors, spec *v1.BackupRequest, has func(v1.Target) bool) {
	if !v1.IsName(spec.Name) {
		f.Add("name", "must be at most 128 printable characters")
	}
	checkTarget(f, &spec.Target, has)
	spec.Ignore = checkPatterns(f, "ignore", spec.Ignore)
	checkQuiesce(f, spec.Quiesce)
}

// CheckPolicy adds every error of a policy's spec to f, and sets defaults. A policy must keep
// fewer backups than a volume may have, or it could make none.
func CheckPolicy(f *v1.FieldErrors, spec *v1.PolicySpec, limits v1.BackupsConfig, has func(v1.Target) bool) {
	switch every := time.Duration(spec.Every); {
	case (every == 0) == (spec.Cron == ""):
		f.Add("every", "must be set, or cron: exactly one of the two")
	case spec.Cron != "":
		if spec.Timezone == "" {
			spec.Timezone = "UTC"
		}
		checkCron(f, spec.Cron, spec.Timezone, "or a name such as @daily")
	case spec.Timezone != "":
		f.Add("timezone", "must be beside cron")
	case every < minEvery || every > maxEvery:
		f.Add("every", "must be between 10s and 365d")
	}
	checkKeep(f, spec.Keep, limits)
	checkTarget(f, &spec.Target, has)
	spec.Ignore = checkPatterns(f, "ignore", spec.Ignore)
	checkQuiesce(f, spec.Quiesce)
}

func checkKeep(f *v1.FieldErrors, keep int, limits v1.BackupsConfig) {
	if most := min(maxKeep, limits.MaxPerVolume-1); keep < 1 || keep > most {
		f.Add("keep", "must be between 1 and %d", most)
	}
}

func checkTarget(f *v1.FieldErrors, target *v1.Target, has func(v1.Target) bool) {
	if *target == "" {
		*target = v1.TargetLocal
	}
	switch {
	case !slices.Contains(v1.Targets(), *target):
		f.Add("target", "must be local or s3")
	case *target == v1.TargetS3 && !has(v1.TargetS3):
		f.Add("target", "must be local: backups.s3.endpoint is not configured")
	}
}

// CheckIgnore checks the patterns of what an archive leaves out.
func CheckIgnore(f *v1.FieldErrors, patterns []string) { checkPatterns(f, "ignore", patterns) }

func checkPatterns(f *v1.FieldErrors, field string, patterns []string) []string {
	if len(patterns) > maxIgnore {
		f.Add(field, "must have at most %d patterns", maxIgnore)
		return patterns
	}
	bytes := 0
	for i, p := range patterns {
		bytes += len(p)
		if len(p) > maxIgnorePattern || !utf8.ValidString(p) || strings.ContainsAny(p, "\x00\n\r") {
			f.Add(fmt.Sprintf("%s[%d]", field, i), "must be one line of at most %d bytes of UTF-8", maxIgnorePattern)
		}
	}
	if bytes > maxIgnoreBytes {
		f.Add(field, "must have at most %d bytes in all", maxIgnoreBytes)
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

// CheckRestore adds the errors of a restore's mode and paths to f, and sets the default of the mode.
func CheckRestore(f *v1.FieldErrors, r *v1.RestoreRequest) {
	switch {
	case r.Mode == "" && len(r.Paths) == 0:
		r.Mode = v1.RestoreReplace
	case r.Mode == "":
		r.Mode = v1.RestoreMerge
	case r.Mode != v1.RestoreReplace && r.Mode != v1.RestoreMerge:
		f.Add("mode", "must be replace or merge")
	case r.Mode == v1.RestoreReplace && len(r.Paths) > 0:
		f.Add("mode", "must be merge with paths")
	}
	if len(r.Paths) > maxRestorePaths {
		f.Add("paths", "must have at most %d paths", maxRestorePaths)
		return
	}
	bytes := 0
	for i, p := range r.Paths {
		bytes += len(p)
		parsed, err := v1.ParsePath(p, v1.DotsInNames)
		switch {
		case err != nil:
			f.Add(fmt.Sprintf("paths[%d]", i), "must be a path inside the volume, without ..")
		case path.Clean(parsed) == ".":
			f.Add(fmt.Sprintf("paths[%d]", i), "must not be the root: leave paths out to restore everything")
		}
	}
	if bytes > maxRestorePathBytes {
		f.Add("paths", "must have at most %d bytes in all", maxRestorePathBytes)
	}
}
