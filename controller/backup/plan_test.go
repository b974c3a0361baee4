package backup

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/jobs"
)

var errBroken = errors.New("broken")

func TestPlan(t *testing.T) {
	runs, removal := Observed{Job: Job{State: jobs.Running}}, Observed{Removal: Job{State: jobs.Running}}
	ended := Observed{Job: Job{State: jobs.Ended}}
	failed := Observed{Job: Job{State: jobs.Ended, Err: errBroken}}
	removed := Observed{Removal: Job{State: jobs.Ended}}
	gone := func(o Observed) Observed { o.VolumeDeleted = true; return o }
	st := func(s v1.JobState, change ...func(*v1.BackupStatus)) v1.BackupStatus {
		status := v1.BackupStatus{State: s}
		for _, c := range change {
			c(&status)
		}
		return status
	}
	due := func(s *v1.BackupStatus) { s.ResumeDue = true }
	left := func(s *v1.BackupStatus) { s.Leftover = true }
	attempts := func(n int) func(*v1.BackupStatus) { return func(s *v1.BackupStatus) { s.Attempts = n } }
	for _, c := range []struct {
		name    string
		deleted bool
		status  v1.BackupStatus
		o       Observed
		want    Action
	}{
		{"new", false, st(""), Observed{}, RecordPending},
		{"pending", false, st(v1.JobPending), Observed{}, Begin},
		{"it runs", false, st(v1.JobRunning), runs, RecordProgress},
		{"it runs, and its volume is deleted", false, st(v1.JobRunning), gone(runs), Cancel},
		{"it ended", false, st(v1.JobRunning), ended, RecordCompleted},
		{"it ended, and its volume is deleted", false, st(v1.JobRunning), gone(ended), RecordFailed},
		{"it failed", false, st(v1.JobRunning), failed, RecordFailed},
		{"berth was killed", false, st(v1.JobRunning, attempts(1)), Observed{}, Begin},
		{"berth was killed between the commands", false, st(v1.JobRunning, attempts(1), due), Observed{}, SendResume},
		{"berth was killed too often", false, st(v1.JobRunning, attempts(3)), Observed{}, RecordFailed},
		{"too often, between the commands", false, st(v1.JobRunning, attempts(3), due), Observed{}, SendResume},
		{"it ended, and the command is due", false, st(v1.JobRunning, due), ended, RecordCompleted},
		{"completed", false, st(v1.JobCompleted), Observed{}, Rest},
		{"completed, and its volume is deleted", false, st(v1.JobCompleted), gone(Observed{}), Rest},
		{"completed, and the command is due", false, st(v1.JobCompleted, due), Observed{}, SendResume},
		{"failed", false, st(v1.JobFailed), Observed{}, Rest},
		{"failed, and the command is due", false, st(v1.JobFailed, due, left), Observed{}, SendResume},
		{"failed, with a part in the target", false, st(v1.JobFailed, left), Observed{}, Remove},
		{"the part is being removed", false, st(v1.JobFailed, left), removal, Await},
		{"the part was removed", false, st(v1.JobFailed, left), removed, Collect},
		{"deleted", true, st(v1.JobCompleted), Observed{}, RecordDeleting},
		{"deleted before anything", true, st(""), Observed{}, RecordDeleting},
		{"deleted while it runs", true, st(v1.JobDeleting), runs, Cancel},
		{"deleted, and the command is due", true, st(v1.JobDeleting, due), ended, SendResume},
		{"deleted, and its job has ended", true, st(v1.JobDeleting), ended, Remove},
		{"deleted", true, st(v1.JobDeleting), Observed{}, Remove},
		{"its archive is being removed", true, st(v1.JobDeleting), removal, Await},
		{"its archive was removed", true, st(v1.JobDeleting), removed, Collect},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := v1.Backup{Status: c.status, Meta: v1.Meta{Deleted: c.deleted}}
			require.Equal(t, c.want, Plan(b, c.o))
		})
	}
}

func TestPlanRestore(t *testing.T) {
	ended := Job{State: jobs.Ended}
	for _, c := range []struct {
		name   string
		status v1.RestoreStatus
		o      Observed
		want   Action
	}{
		{"new", v1.RestoreStatus{}, Observed{}, RecordPending},
		{"pending", v1.RestoreStatus{State: v1.JobPending}, Observed{}, Begin},
		{"a container runs", v1.RestoreStatus{State: v1.JobPending}, Observed{VolumeBusy: true}, Await},
		{"it runs", v1.RestoreStatus{State: v1.JobRunning}, Observed{Job: Job{State: jobs.Running}}, Await},
		{"it ended", v1.RestoreStatus{State: v1.JobRunning}, Observed{Job: ended}, RecordCompleted},
		{"it ended, and a container runs", v1.RestoreStatus{State: v1.JobRunning}, Observed{Job: ended, VolumeBusy: true}, RecordCompleted},
		{"it failed", v1.RestoreStatus{State: v1.JobRunning}, Observed{Job: Job{State: jobs.Ended, Err: errBroken}}, RecordFailed},
		{"berth was killed", v1.RestoreStatus{State: v1.JobRunning, Attempts: 2}, Observed{}, Begin},
		{"berth was killed, and a container runs", v1.RestoreStatus{State: v1.JobRunning, Attempts: 2}, Observed{VolumeBusy: true}, Await},
		{"berth was killed too often", v1.RestoreStatus{State: v1.JobRunning, Attempts: 3}, Observed{VolumeBusy: true}, RecordFailed},
		{"completed", v1.RestoreStatus{State: v1.JobCompleted}, Observed{VolumeBusy: true}, Rest},
		{"failed", v1.RestoreStatus{State: v1.JobFailed}, Observed{}, Rest},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, PlanRestore(v1.Restore{Status: c.status}, c.o))
		})
	}
}

func TestPlanPolicy(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const every, jitter = time.Hour, 3 * time.Minute
	at := func(d time.Duration) *time.Time { next := now.Add(d); return &next }
	for _, c := range []struct {
		name       string
		next       *time.Time
		of         time.Duration
		unfinished bool
		due        bool
		want       time.Duration // from now
	}{
		{"new", nil, 0, false, false, every + jitter},
		{"not due", at(time.Minute), every, false, false, time.Minute},
		{"due", at(0), every, false, true, every},
		{"due a moment ago", at(-time.Minute), every, false, true, every - time.Minute},
		{"missed many times: made up once", at(-100 * every), every, false, true, every + jitter},
		{"the last one has not finished", at(-time.Minute), every, true, false, -time.Minute},
		{"another period", at(-time.Minute), 2 * time.Hour, false, false, every + jitter},
		{"the clock was set back", at(2 * time.Hour), every, false, false, every + jitter},
		{"the jitter of the first run", at(every + every/10), every, false, false, every + every/10},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := v1.BackupPolicy{Spec: v1.PolicySpec{Every: v1.Duration(every), Keep: 1}, Status: v1.PolicyStatus{Every: v1.Duration(c.of), NextRunAt: c.next}}
			due, next := PlanPolicy(p, PolicyObserved{now, jitter, c.unfinished})
			require.Equal(t, c.due, due)
			require.Equal(t, now.Add(c.want), next)
		})
	}
}

func TestPlanPolicyWithCron(t *testing.T) {
	const berlin = "Europe/Berlin"
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) // 13:00 in Berlin
	at := func(d time.Duration) *time.Time { next := now.Add(d); return &next }
	const fresh = 15 * time.Hour // until 3:00 UTC
	of := func(handled time.Duration) v1.CronState {
		return v1.CronState{Cron: "0 3 * * *", Timezone: "UTC", Handled: now.Add(handled)}
	}
	for _, c := range []struct {
		name       string
		next       *time.Time
		of         v1.CronState
		unfinished bool
		due        bool
		want       time.Duration // from now
	}{
		{"new", nil, v1.CronState{}, false, false, fresh},
		{"not due", at(time.Minute), of(-time.Hour), false, false, time.Minute},
		{"due", at(0), of(-time.Hour), false, true, fresh},
		{"missed many times: made up once", at(-1000 * time.Hour), of(-1024 * time.Hour), false, true, fresh},
		{"the last one has not finished", at(-time.Minute), of(-time.Hour), true, false, -time.Minute},
		{"another zone", at(-time.Minute), v1.CronState{Cron: "0 3 * * *", Timezone: berlin, Handled: now}, false, false, fresh},
		{"it had a period", at(-time.Minute), v1.CronState{}, false, false, fresh},
		{"the clock was set back a little", at(25 * time.Hour), of(time.Hour), false, false, 25 * time.Hour},
		{"the clock was set back", at(1000 * time.Hour), of(976 * time.Hour), false, false, fresh},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := v1.BackupPolicy{Spec: v1.PolicySpec{Cron: "0 3 * * *", Timezone: "UTC", Keep: 1}, Status: v1.PolicyStatus{CronState: c.of, NextRunAt: c.next}}
			due, next := PlanPolicy(p, PolicyObserved{now, 0, c.unfinished})
			require.Equal(t, c.due, due)
			require.Equal(t, now.Add(c.want), next)
		})
	}
	p := v1.BackupPolicy{Spec: v1.PolicySpec{Cron: "0 4 * * *", Timezone: berlin, Keep: 1}}
	_, next := PlanPolicy(p, PolicyObserved{Now: now})
	require.Equal(t, now.Add(15*time.Hour), next)
}
