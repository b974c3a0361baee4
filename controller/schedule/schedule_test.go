package schedule

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

const day = 24 * time.Hour

func TestRunTakesItsSteps(t *testing.T) {
	live(t, func(w *world) {
		w.put("nightly", daily(say("say restart"), wait(time.Minute), v1.ScheduleStep{Power: "restart"},
			v1.ScheduleStep{WaitFor: v1.Running, Timeout: v1.Duration(time.Hour)}, say("say back")))
		require.Equal(t, 4, w.status("nightly").NextRun.Hour())
		time.Sleep(4*time.Hour + 59*time.Second)
		require.Equal(t, []string{"say restart\n"}, w.lines())
		require.Equal(t, uint64(1), w.spec().RunGeneration)
		require.Equal(t, 2, w.last("nightly", v1.RunRunning).Step)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, uint64(2), w.spec().RunGeneration)
		require.Equal(t, v1.ScheduleActor("nightly"), w.spec().RequestedBy)
		time.Sleep(time.Minute)
		require.Equal(t, 4, w.last("nightly", v1.RunRunning).Step, "the phase is that of the run before")
		w.phase("mc", v1.Running)
		run := w.last("nightly", v1.RunCompleted)
		require.Equal(t, 5, run.Step)
		require.Equal(t, 2*time.Minute, run.FinishedAt.Sub(run.StartedAt).Round(time.Second))
		require.Equal(t, []string{"say restart\n", "say back\n"}, w.lines())
		require.Equal(t, []string{"nightly running", "nightly completed"}, w.events())
		time.Sleep(day)
		require.Equal(t, uint64(2), w.status("nightly").Runs)
		var actions []string
		entries, err := store.ReadAudit(w.store.Read(), 0, 1000, v1.AuditFilter{Actor: "nightly"})
		require.NoError(t, err)
		for _, e := range entries {
			actions = append(actions, e.Action)
		}
		require.Equal(t, []string{"container.command", "container.restart", "container.command", "container.command", "container.restart"}, actions)
		require.NoError(t, testutil.GatherAndCompare(w.metrics, strings.NewReader(`
# HELP berth_schedule_runs_total Runs of schedules that have ended or were skipped.
# TYPE berth_schedule_runs_total counter
berth_schedule_runs_total{result="completed"} 1
berth_schedule_runs_total{result="failed"} 0
berth_schedule_runs_total{result="skipped"} 0
# HELP berth_schedule_failures How many of the last runs of a schedule failed, without one that completed since.
# TYPE berth_schedule_failures gauge
berth_schedule_failures{container="mc",schedule="nightly"} 0
`), "berth_schedule_runs_total", "berth_schedule_failures"))
	})
}

// TestBackupStep: the run waits for the backup, and keeps as many as the step says.
func TestBackupStep(t *testing.T) {
	live(t, func(w *world) {
		w.put("save", daily(v1.ScheduleStep{Backup: &v1.ScheduleBackup{Keep: 2}}, say("saved")))
		for range 4 {
			time.Sleep(day)
			w.last("save", v1.RunRunning)
			w.end(v1.JobCompleted)
			w.last("save", v1.RunCompleted)
		}
		kept := 0
		for _, b := range w.backups() {
			require.Equal(t, v1.ScheduleID("mc", "save"), b.Spec.Schedule)
			if !b.Meta.Deleted {
				kept++
			}
		}
		require.Equal(t, 2, kept)
		require.Len(t, w.lines(), 4)
		time.Sleep(day)
		w.end(v1.JobFailed)
		require.Equal(t, "step 1: the backup failed: of the test", w.last("save", v1.RunFailed).Message)
		require.Equal(t, 1, w.status("save").Failures)
		time.Sleep(day)
		require.NoError(t, intent.DeleteBackup(w.store, w.status("save").Backup))
		require.Equal(t, "step 1: the backup was deleted", w.last("save", v1.RunFailed).Message)
		require.Equal(t, 2, w.status("save").Failures)
		require.Len(t, w.lines(), 4)
	})
}

func TestSkipped(t *testing.T) {
	live(t, func(w *world) {
		w.put("overlap", v1.ScheduleSpec{Cron: "0 4-5 * * *", Steps: []v1.ScheduleStep{wait(time.Hour), wait(time.Minute)}})
		w.put("off", v1.ScheduleSpec{Cron: "0 4 * * *", Enabled: new(false), Steps: []v1.ScheduleStep{say("no")}})
		time.Sleep(6 * time.Hour)
		require.Equal(t, []string{"overlap running", "overlap skipped", "overlap completed"}, w.events())
		require.Nil(t, w.status("off").NextRun)
		w.phase("mc", v1.Exit)
		w.put("always", v1.ScheduleSpec{Cron: "0 4 * * *", If: v1.IfAlways, Steps: []v1.ScheduleStep{{Power: "start"}}})
		time.Sleep(22*time.Hour + time.Second)
		require.Equal(t, "the container is not running", w.last("overlap", v1.RunSkipped).Message)
		w.last("always", v1.RunCompleted)
		require.NoError(t, intent.RunSchedule(w.store, "mc", "off"))
		w.last("off", v1.RunSkipped)
		w.phase("mc", v1.Running)
		require.NoError(t, intent.RunSchedule(w.store, "mc", "off"))
		w.last("off", v1.RunCompleted)
		require.Equal(t, []string{"no\n"}, w.lines())
		require.Nil(t, w.status("off").NextRun)
	})
}

// TestMissed: berth was away at two due times.
func TestMissed(t *testing.T) {
	for missed, want := range map[v1.ScheduleMissed][]string{v1.MissedSkip: nil, v1.MissedOnce: {"hi\n"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			stop := w.run()
			spec := daily(say("hi"))
			spec.Missed = missed
			w.put("x", spec)
			stop()
			time.Sleep(2 * day)
			stop = w.run()
			require.Equal(t, want, w.lines())
			if missed == v1.MissedSkip {
				require.Equal(t, "berth was away when it was due", w.last("x", v1.RunSkipped).Message)
			}
			time.Sleep(4*time.Hour + time.Second)
			require.Equal(t, append(want, "hi\n"), w.lines(), "the next time is due as ever")
			stop()
		})
	}
}

// TestClockJumps: what a jump forward makes due runs once, and after one back nothing runs again. The schedule
// goes on by the clock that is right now.
func TestClockJumps(t *testing.T) {
	const year = 365 * day
	for _, jump := range []time.Duration{time.Hour, year, -time.Hour, -year} {
		live(t, func(w *world) {
			w.put("x", daily(say("hi")))
			if jump > 0 {
				time.Sleep(3*time.Hour + 30*time.Minute)
				w.clock.Store(int64(jump))
				time.Sleep(2 * time.Minute)
				require.Len(t, w.lines(), 1, jump)
			} else {
				time.Sleep(4*time.Hour + 30*time.Minute)
				w.clock.Store(int64(jump))
				time.Sleep(2 * time.Hour)
				require.Len(t, w.lines(), 1, jump)
			}
			time.Sleep(day)
			require.Len(t, w.lines(), 2, jump)
			require.Equal(t, 4, w.status("x").LastRun.StartedAt.UTC().Hour(), jump)
			w.clock.Store(0)
			time.Sleep(2 * day)
			require.GreaterOrEqual(t, len(w.lines()), 3, jump)
			require.LessOrEqual(t, len(w.lines()), 4, jump)
		})
	}
}

func TestEvents(t *testing.T) {
	live(t, func(w *world) {
		w.put("up", v1.ScheduleSpec{Cron: v1.CronStart, Steps: []v1.ScheduleStep{say("up")}})
		w.put("down", v1.ScheduleSpec{Cron: v1.CronExit, Steps: []v1.ScheduleStep{{Power: "start"}}})
		w.put("crash", v1.ScheduleSpec{Cron: v1.CronCrash, Steps: []v1.ScheduleStep{wait(time.Second)}})
		time.Sleep(day)
		require.Empty(t, w.events(), "nothing has happened since")
		w.phase("mc", v1.Exit)
		require.Equal(t, uint64(2), w.spec().RunGeneration)
		w.phase("mc", v1.Running)
		require.Equal(t, []string{"up\n"}, w.lines())
		w.phase("mc", v1.Exit)
		require.Equal(t, uint64(2), w.spec().RunGeneration, "runs are a minute apart")
		w.phase("mc", v1.Running)
		require.Equal(t, []string{"up\n"}, w.lines())
		w.update(func(tx *store.Tx) error {
			return store.Containers.SetStatus(tx, "mc", func(s *v1.ContainerStatus) { s.Totals.Crashes++ })
		})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"down running", "down completed", "up running", "up completed", "crash running", "crash completed"}, w.events())
		w.phase("mc", v1.Running)
		require.Equal(t, []string{"up\n", "up\n"}, w.lines())
	})
}

// TestFailedStep: it ends the run, unless it has continue.
func TestFailedStep(t *testing.T) {
	live(t, func(w *world) {
		w.send = func(context.Context, string) error { return v1.ErrInputFull }
		never := v1.ScheduleStep{WaitFor: v1.Exit, Timeout: v1.Duration(time.Minute)}
		w.put("ends", daily(never, say("hi")))
		goesOn, unsent := never, say("hi")
		goesOn.Continue, unsent.Continue = true, true
		w.put("goes-on", daily(goesOn, unsent, wait(time.Second)))
		time.Sleep(4*time.Hour + 2*time.Minute)
		require.Equal(t, "step 1: the container was not in the state exit within 1m0s", w.last("ends", v1.RunFailed).Message)
		require.Equal(t, "step 2: the command was not sent: Container does not read its input", w.last("goes-on", v1.RunCompleted).Message)
		require.Equal(t, []string{"hi\n"}, w.lines())
	})
}

func TestRunEnds(t *testing.T) {
	live(t, func(w *world) {
		w.put("x", daily(wait(time.Hour), say("hi")))
		time.Sleep(4*time.Hour + time.Minute)
		w.last("x", v1.RunRunning)
		require.NoError(t, intent.ReinstallContainer(w.store, "mc", v1.ReinstallRequest{}))
		require.Equal(t, "the container was reinstalled", w.last("x", v1.RunFailed).Message)
		w.phase("mc", v1.Running)
		time.Sleep(day)
		w.last("x", v1.RunRunning)
		require.NoError(t, intent.DeleteContainer(w.store, "mc"))
		require.Empty(t, store.Schedules.IDs(w.store.Read()))
		time.Sleep(2 * day)
		require.Empty(t, w.lines())
	})
}

// TestChangedDuringARun: the run goes on with its steps, and the next one has the new ones.
func TestChangedDuringARun(t *testing.T) {
	live(t, func(w *world) {
		w.put("x", daily(wait(time.Minute), say("old")))
		time.Sleep(4*time.Hour + time.Second)
		w.put("x", v1.ScheduleSpec{Cron: "0 5 * * *", Steps: []v1.ScheduleStep{say("new")}})
		time.Sleep(2 * time.Hour)
		require.Equal(t, []string{"old\n", "new\n"}, w.lines())
	})
}

// TestInterrupted: berth ends while a line is being sent. It was recorded before: it is not sent again, and the
// next step follows.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.put("x", daily(say("one"), say("two"), v1.ScheduleStep{Power: "stop"}))
		w.send = func(ctx context.Context, line string) error { <-ctx.Done(); return ctx.Err() }
		time.Sleep(4*time.Hour + time.Second)
		require.Equal(t, []string{"one\n"}, w.lines())
		require.Equal(t, 1, w.last("x", v1.RunRunning).Step)
		stop()
		w.send = nil
		stop = w.run()
		require.Equal(t, []string{"one\n", "two\n"}, w.lines())
		w.last("x", v1.RunCompleted)
		require.Equal(t, v1.PowerOff, w.spec().Power)
		stop()
	})
}

// TestStepIsRecordedWithItsRequest: a request and its step are one commit, so that a kill between the two neither repeats nor loses it.
// The step of a line is recorded before the line is sent.
func TestStepIsRecordedWithItsRequest(t *testing.T) {
	live(t, func(w *world) {
		backup := v1.ScheduleStep{Backup: &v1.ScheduleBackup{Keep: 1}}
		w.put("x", daily(v1.ScheduleStep{Power: "restart"}, backup, say("hi"), v1.ScheduleStep{Power: "stop"}))
		time.Sleep(4*time.Hour + time.Second)
		w.end(v1.JobCompleted)
		w.last("x", v1.RunCompleted)
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Equal(t, [][2]int{{0, 1}, {1, 2}, {3, 3}, {3, 4}}, w.taken)
	})
}

// TestManyAtOnce: 1,000 schedules are due at the same minute, and the console of one container takes nothing.
func TestManyAtOnce(t *testing.T) {
	live(t, func(w *world) {
		w.send = func(ctx context.Context, line string) error {
			if line == "stuck\n" {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		for i := range 20 {
			w.put(fmt.Sprintf("stuck-%d", i), daily(say("stuck"), say("stuck")))
		}
		for i := range 1000 {
			id := fmt.Sprintf("c%d", i)
			w.container(id)
			w.putOf(id, "nightly", daily(say("hi"), v1.ScheduleStep{Power: "restart"}))
		}
		time.Sleep(4*time.Hour + time.Minute)
		completed := 0
		for _, s := range store.Schedules.List(w.store.Read()) {
			if s.Spec.Name == "nightly" && s.Status.LastRun != nil && s.Status.LastRun.State == v1.RunCompleted {
				completed++
			}
		}
		require.Equal(t, 1000, completed)
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Equal(t, maxLines, w.most)
	})
}
