package intent

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// The limits of schedules.
const (
	maxSchedules     = 20 // of a container
	maxScheduleSteps = 16
	maxStepBytes     = 16 << 10 // of all steps as JSON
	maxStepCommand   = 4095     // bytes: a terminal keeps no more of a line
	minScheduleWait  = time.Second
	maxScheduleWait  = time.Hour
)

var scheduleName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// SchedulePolicy is what the checks of a schedule need to know of the configuration.
type SchedulePolicy struct {
	Backups v1.BackupsConfig
	Has     func(v1.Target) bool // the operator has configured the target
}

// CheckSchedule adds every error of a schedule to f, and sets defaults.
func CheckSchedule(f *v1.FieldErrors, p SchedulePolicy, container, name string, spec *v1.ScheduleSpec) {
	if !scheduleName.MatchString(name) {
		f.Add("name", "must be 1 to 32 lower-case letters, digits and hyphens")
	}
	spec.Container, spec.Name = container, name
	event := slices.Contains([]string{v1.CronStart, v1.CronExit, v1.CronCrash}, spec.Cron)
	if spec.If == "" {
		spec.If = v1.IfRunning
		if event && spec.Cron != v1.CronStart { // the container does not run then
			spec.If = v1.IfAlways
		}
	}
	*spec = v1.WithDefaults(*spec)
	if event {
		checkTimezone(f, spec.Timezone)
	} else {
		checkCron(f, spec.Cron, spec.Timezone, "a name such as @daily, or @start, @exit or @crash")
	}
	if spec.If != v1.IfRunning && spec.If != v1.IfAlways {
		f.Add("if", "must be running or always")
	}
	if spec.Missed != v1.MissedSkip && spec.Missed != v1.MissedOnce {
		f.Add("missed", "must be skip or once")
	}
	if n := len(spec.Steps); n < 1 || n > maxScheduleSteps {
		f.Add("steps", "must have 1 to %d steps", maxScheduleSteps)
		return
	}
	for i := range spec.Steps {
		checkStep(f, p, fmt.Sprintf("steps[%d]", i), container, &spec.Steps[i])
	}
	if text, _ := json.Marshal(spec.Steps); len(text) > maxStepBytes { // plain data: it cannot fail
		f.Add("steps", "must have at most %d bytes of JSON in all", maxStepBytes)
	}
}

// checkCron adds the errors of an expression and its time zone. others is what it may be instead of five fields.
func checkCron(f *v1.FieldErrors, cron, timezone, others string) {
	if !checkTimezone(f, timezone) {
		return
	}
	if _, err := v1.ParseCron(cron, timezone); err != nil {
		f.Add("cron", `must be five fields such as "0 4 * * *", %s: %s`, others, v1.MessageText(err.Error()))
	}
}

// checkStep adds every error of a step to f, and sets defaults.
func checkStep(f *v1.FieldErrors, p SchedulePolicy, field, container string, s *v1.ScheduleStep) {
	kinds := 0
	for _, is := range []bool{s.Command != "", s.Wait != 0, s.Power != "", s.Backup != nil, s.WaitFor != ""} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		f.Add(field, "must have exactly one of command, wait, power, backup and wait_for")
		return
	}
	if s.WaitFor == "" && s.Timeout != 0 {
		f.Add(field+".timeout", "must be beside wait_for")
	}
	switch {
	case s.Command != "":
		if len(s.Command) > maxStepCommand || strings.ContainsAny(s.Command, "\x00\r\n") {
			f.Add(field+".command", "must be one line of at most %d bytes without NUL", maxStepCommand)
		}
	case s.Wait != 0:
		checkWait(f, field+".wait", s.Wait)
	case s.Power != "":
		if !slices.Contains([]Verb{Start, Stop, Restart, Kill}, Verb(s.Power)) {
			f.Add(field+".power", "must be start, stop, restart or kill")
		}
	case s.WaitFor != "":
		if !slices.Contains([]v1.Phase{v1.Running, v1.Exit, v1.Ready, v1.Failed}, s.WaitFor) {
			f.Add(field+".wait_for", "must be running, exit, ready or failed")
		}
		checkWait(f, field+".timeout", s.Timeout)
	default:
		checkStepBackup(f, p, field+".backup", container, s.Backup)
	}
}

func checkWait(f *v1.FieldErrors, field string, wait v1.Duration) {
	if d := time.Duration(wait); d < minScheduleWait || d > maxScheduleWait {
		f.Add(field, "must be between 1s and 1h")
	}
}

func checkStepBackup(f *v1.FieldErrors, p SchedulePolicy, field, container string, b *v1.ScheduleBackup) {
	var inner v1.FieldErrors
	checkKeep(&inner, b.Keep, p.Backups)
	CheckBackup(&inner, &b.BackupRequest, p.Has)
	if b.Quiesce != nil && b.Quiesce.Container != container {
		inner.Add("quiesce.container", "must be the container of the schedule")
	}
	for _, e := range inner {
		f.Add(field+"."+e.Key, "%s", e.Message)
	}
}

// FindSchedule returns a schedule of a container, or v1.ErrScheduleNotFound.
func FindSchedule(tx *store.Tx, container, name string) (v1.Schedule, error) {
	o, err := store.Schedules.Get(tx, v1.ScheduleID(container, name))
	if errors.Is(err, store.ErrNotFound) || !scheduleName.MatchString(name) {
		return o, v1.ErrScheduleNotFound
	}
	return o, err
}

// PutSchedule stores a schedule, whose spec CheckSchedule has accepted, in place of the one before. A run of it
// that has begun goes on with its steps. Its refusals are v1.ErrContainerNotFound and the codes ContainerDeleting
// and TooManySchedules.
func PutSchedule(s store.Writer, spec v1.ScheduleSpec) error {
	return s.Update(func(tx *store.Tx) error {
		if _, err := findActive(tx, spec.Container); err != nil {
			return err
		}
		spec.RequestedBy = tx.Actor()
		id := v1.ScheduleID(spec.Container, spec.Name)
		_, err := store.Schedules.Get(tx, id)
		switch {
		case err == nil:
			return store.Schedules.SetSpec(tx, id, func(old *v1.ScheduleSpec) error {
				spec.RunGeneration = old.RunGeneration
				*old = spec
				return nil
			})
		case !errors.Is(err, store.ErrNotFound):
			return err
		case len(store.Schedules.IDsBy(tx, spec.Container)) >= maxSchedules:
			return v1.Errorf(v1.TooManySchedules, "Container has %d schedules: delete one of them first", maxSchedules)
		}
		spec.RunGeneration = 0
		return store.Schedules.Create(tx, id, spec)
	})
}

// RunSchedule requests a run of a schedule, whatever its times are. It is skipped if one is in progress then.
// Its refusals are those of activeSchedule.
func RunSchedule(s store.Writer, container, name string) error {
	return s.Update(func(tx *store.Tx) error {
		o, err := activeSchedule(tx, container, name)
		if err != nil {
			return err
		}
		return store.Schedules.SetSpec(tx, o.Meta.ID, func(spec *v1.ScheduleSpec) error {
			spec.RunGeneration++
			spec.RequestedBy = tx.Actor()
			return nil
		})
	})
}

// DeleteSchedule removes a schedule, and ends its run. Its backups stay. Its refusals are those of activeSchedule.
func DeleteSchedule(s store.Writer, container, name string) error {
	return s.MustUpdate(func(tx *store.Tx) error {
		o, err := activeSchedule(tx, container, name)
		if err != nil {
			return err
		}
		return store.Schedules.Purge(tx, o.Meta.ID)
	})
}

// activeSchedule returns a schedule. Its refusals are v1.ErrContainerNotFound, the code ContainerDeleting,
// and v1.ErrScheduleNotFound.
func activeSchedule(tx *store.Tx, container, name string) (o v1.Schedule, err error) {
	if _, err := findActive(tx, container); err != nil {
		return o, err
	}
	return FindSchedule(tx, container, name)
}

// purgeSchedules removes the schedules of a container that is being deleted.
func purgeSchedules(tx *store.Tx, container string) error {
	for _, id := range store.Schedules.IDsBy(tx, container) {
		if err := store.Schedules.Purge(tx, id); err != nil {
			return err
		}
	}
	return nil
}
