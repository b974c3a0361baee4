package container_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	. "berth/controller/container"
	"berth/runtime"
	"berth/store"
)

// starts returns a change to an observation of a run that has been starting for d.
func starts(d time.Duration) func(*Observed) {
	return func(o *Observed) { o.StartFor, o.Warn = d, Warnings{Start: time.Minute, Install: time.Minute} }
}

func limited(s *v1.ContainerSpec) {
	s.StartPattern, s.StartTimeout = "p", v1.Duration(2*time.Minute)
}

// startingWith returns the status of a starting run with conditions.
func startingWith(conditions ...v1.Condition) func(*v1.ContainerStatus) {
	return func(s *v1.ContainerStatus) { s.Phase, s.Conditions = v1.Starting, conditions }
}

func warned(s *v1.ContainerStatus) {
	s.Phase, s.Conditions = v1.Starting, []v1.Condition{{Type: v1.StartPatternNotMatched, Status: v1.True}}
}

func TestPlanStarting(t *testing.T) {
	pattern := func(s *v1.ContainerSpec) { s.StartPattern = "p" }
	check(t, []row{
		{"not matched yet", limited, is(v1.Starting), starts(0), AwaitMatch},
		{"matched", limited, is(v1.Starting), func(o *Observed) { starts(time.Hour)(o); o.Matched = true }, RecordRunning},
		{"slow", limited, is(v1.Starting), starts(time.Minute), RecordStartSlow},
		{"slow, without a limit", pattern, is(v1.Starting), starts(time.Minute), RecordStartSlow},
		{"not slow yet", pattern, is(v1.Starting), starts(time.Minute - 1), AwaitMatch},
		{"slow, and reported", pattern, warned, starts(time.Hour), AwaitMatch},
		{"slow again", pattern, startingWith(v1.Condition{Type: v1.StartPatternNotMatched, Status: v1.False}), starts(time.Minute), RecordStartSlow},
		{"slow, and warnings are off", pattern, is(v1.Starting), func(o *Observed) { o.StartFor = time.Hour }, AwaitMatch},
		{"slow without a pattern", nil, is(v1.Starting), starts(time.Hour), AwaitMatch},
		{"too late", limited, is(v1.Starting), starts(2 * time.Minute), RecordStartTimeout},
		{"too late by the host's clock", limited, func(s *v1.ContainerStatus) { s.Phase, s.StartRecordedAt = v1.Starting, t0 }, starts(0), AwaitMatch},
		{"too late is stopped", limited, is(v1.Stopping), starts(0), SendStop},
	})
}

// waits requires a wait for a match until a time.
func waits(t *testing.T, at time.Time, s Step) {
	t.Helper()
	require.Equal(t, AwaitMatch.Name, s.Name)
	require.Equal(t, at, s.At)
}

func TestNextCheckOfStart(t *testing.T) {
	c := wanted()
	limited(&c.Spec)
	for _, tc := range []struct {
		status func(*v1.ContainerStatus)
		now    time.Duration
		at     time.Duration
	}{
		{startingWith(), 0, time.Minute},
		{startingWith(v1.Condition{Type: v1.StartPatternNotMatched, Status: v1.True}), time.Minute, time.Minute},
	} {
		tc.status(&c.Status)
		o := running(c)
		starts(tc.now)(&o)
		waits(t, t2.Add(tc.at), Plan(c, o))
	}
	c.Spec.StartTimeout, c.Status = 0, v1.ContainerStatus{Phase: v1.Starting, ObservedInstall: 1, ObservedRun: 1}
	o := running(c)
	starts(0)(&o)
	waits(t, t2.Add(time.Minute), Plan(c, o)) // there is no limit
	warned(&c.Status)
	starts(time.Hour)(&o)
	waits(t, time.Time{}, Plan(c, o)) // nothing is left to wait for but the console
}

func TestPlanSlowInstallation(t *testing.T) {
	slow := func(change func(*runtime.State)) func(*Observed) {
		return func(o *Observed) { installing(change)(o); o.InstallFor = time.Minute; o.Warn.Install = time.Minute }
	}
	check(t, []row{
		{"slow", again, begun, slow(nil), RecordInstallSlow},
		{"slow, and reported", again, func(s *v1.ContainerStatus) {
			begun(s)
			s.Conditions = []v1.Condition{{Type: v1.Installed, Status: v1.Unknown, Reason: v1.ReasonInstallSlow}}
		}, slow(nil), AwaitInstall},
		{"warnings are off", again, begun, func(o *Observed) { slow(nil)(o); o.Warn.Install = 0 }, AwaitInstall},
	})
}

// slowWorld starts a container whose start pattern does not match.
func slowWorld(w *world, change func(*v1.ContainerSpec)) {
	w.rec.Warn = Warnings{Start: time.Minute, Install: time.Minute}
	w.console.held.Store(true)
	w.installed(func(s *v1.ContainerSpec) {
		s.StartPattern = "^Done"
		if change != nil {
			change(s)
		}
	})
	w.change(on)
}

// stored returns the stored events of a kind that have a reason.
func stored(w *world, kind string) (list []v1.Event) {
	w.t.Helper()
	synctest.Wait()
	all, err := store.ReadEvents(w.store.Read(), 0, 1000)
	for _, e := range all {
		if e.Event == kind && e.Reason != "" {
			list = append(list, e)
		}
	}
	require.NoError(w.t, err)
	return list
}

func warnings(w *world) []v1.Event { return stored(w, v1.EventMessage) }

// wantTimedOut requires that the transitions with a reason begin with those of a start
// that timed out.
func wantTimedOut(w *world) {
	w.t.Helper()
	var list []string
	for _, e := range stored(w, v1.EventState) {
		list = append(list, e.Data+" "+e.Reason)
	}
	require.GreaterOrEqual(w.t, len(list), 2)
	require.Equal(w.t, []string{"stopping StartTimedOut", "exit StartTimedOut"}, list[:2])
}

func unmatched(c v1.Container) v1.Condition {
	return v1.FindCondition(c.Status.Conditions, v1.StartPatternNotMatched)
}

// TestUnmatchedStartIsReportedOnce: with the pattern, in the message, the condition and an
// event.
func TestUnmatchedStartIsReportedOnce(t *testing.T) {
	live(t, func(w *world) {
		slowWorld(w, nil)
		time.Sleep(59 * time.Second)
		require.Empty(t, unmatched(w.want(v1.Starting)).Status)
		require.Equal(t, "Starting", v1.Unready(w.get().Spec, w.get().Status))
		time.Sleep(10 * time.Minute)
		c := w.want(v1.Starting)
		text := "no line of the console has matched start_pattern `^Done` since 00:00:00 UTC"
		require.Equal(t, text, c.Status.Message)
		require.Equal(t, v1.True, unmatched(c).Status)
		require.Equal(t, text, unmatched(c).Message)
		require.Equal(t, v1.StartPatternNotMatched, v1.Unready(c.Spec, c.Status))
		list := warnings(w)
		require.Len(t, list, 1)
		require.Equal(t, text, list[0].Data)
		require.Equal(t, v1.StartPatternNotMatched, list[0].Reason)

		w.console.held.Store(false)
		time.Sleep(time.Minute) // the resync
		c = w.want(v1.Running)
		require.Equal(t, v1.False, unmatched(c).Status)
		require.Equal(t, "Matched", unmatched(c).Reason)
		require.Empty(t, c.Status.Message)
	})
}

// TestUnmatchedStartEndsWithRun: an exit, or another container of the same start,
// clears the condition.
func TestUnmatchedStartEndsWithRun(t *testing.T) {
	live(t, func(w *world) {
		slowWorld(w, nil)
		time.Sleep(2 * time.Minute)
		require.Equal(t, "no line of the console has matched start_pattern `^Done` since 00:00:00 UTC", unmatched(w.want(v1.Starting)).Message)
		w.engine.Outside.Exit(server, 1)
		c := w.want(v1.Exit)
		require.Equal(t, v1.False, unmatched(c).Status)
		require.Equal(t, "Exited", unmatched(c).Reason)
		time.Sleep(2 * time.Minute)
		require.Equal(t, v1.True, unmatched(w.want(v1.Starting)).Status)
		require.Len(t, warnings(w), 2)
		w.engine.Outside.Vanish(server)
		time.Sleep(time.Second)
		c = w.want(v1.Starting)
		require.Equal(t, []string{v1.False, "Starting"}, []string{unmatched(c).Status, unmatched(c).Reason})
	})
}

// TestStartTimesOut: the run is stopped gracefully, and counts as a crash although it
// exits with code 0.
func TestStartTimesOut(t *testing.T) {
	live(t, func(w *world) {
		slowWorld(w, limited)
		w.engine.Outside.Deafen(server)
		began := time.Now()
		require.WithinDuration(t, began.Add(2*time.Minute), *v1.Deadline(w.want(v1.Starting)), time.Second)
		time.Sleep(119 * time.Second)
		require.Contains(t, w.want(v1.Starting).Status.Message, "; the run is stopped after 2m0s")
		time.Sleep(2 * time.Second)
		c := w.want(v1.Stopping)
		require.Equal(t, v1.True, unmatched(c).Status)
		why := "did not become running within 2m0s: no line matched start_pattern `p`"
		require.Equal(t, why, c.Status.Message)
		require.Nil(t, v1.Deadline(c))
		require.Equal(t, []string{"SIGTERM"}, w.engine.Outside.Signals(server))
		require.Zero(t, w.count("kill", server))
		w.engine.Outside.Exit(server, 0)
		c = w.want(v1.Exit)
		require.Equal(t, why, c.Status.Message)
		require.Equal(t, 0, *c.Status.ExitCode)
		require.Equal(t, uint64(1), c.Status.Totals.Crashes)
		started := v1.FindCondition(c.Status.Conditions, v1.Started)
		require.Equal(t, []string{v1.False, v1.ReasonStartTimedOut, why}, []string{started.Status, started.Reason, started.Message})
		require.WithinDuration(t, time.Now().Add(10*time.Second), *c.Status.NextRetryAt, time.Second)
		wantTimedOut(w)
		list := warnings(w)
		require.Equal(t, why, list[len(list)-1].Data)

		time.Sleep(11 * time.Second)
		require.Equal(t, 1, w.want(v1.Starting).Status.RestartCount)
		time.Sleep(2*time.Minute + time.Second)
		w.want(v1.Stopping)
		w.engine.Outside.Exit(server, 0)
		require.WithinDuration(t, time.Now().Add(20*time.Second), *w.want(v1.Exit).Status.NextRetryAt, time.Second, "the backoff doubles")
	})
}

// TestLongTimeoutKeepsBackoff: a run that never became running does not reset the
// count of crashes, however long it took.
func TestLongTimeoutKeepsBackoff(t *testing.T) {
	live(t, func(w *world) {
		slowWorld(w, func(s *v1.ContainerSpec) { s.StartTimeout = v1.Duration(20 * time.Minute) })
		time.Sleep(42 * time.Minute)
		require.Equal(t, 2, w.want(v1.Starting).Status.Crashes)
	})
}

func TestTimedOutStartObeysPolicy(t *testing.T) {
	for mode, retries := range map[string]bool{v1.RestartNever: false, v1.RestartOnFailure: true, v1.RestartAlways: true} {
		t.Run(mode, func(t *testing.T) {
			live(t, func(w *world) {
				slowWorld(w, func(s *v1.ContainerSpec) { limited(s); s.RestartPolicy.Mode = mode })
				time.Sleep(2*time.Minute + time.Second)
				c := w.want(v1.Exit)
				require.Equal(t, retries, c.Status.NextRetryAt != nil)
				require.Equal(t, uint64(1), c.Status.Totals.Crashes)
			})
		})
	}
}

// TestTimedOutStartSurvivesKill: berth is killed between the record and the stop, and
// the host's clock is set back: the run is stopped all the same.
func TestTimedOutStartSurvivesKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		slowWorld(w, limited)
		agree := w.refuse("signal", server, runtime.ErrUnavailable)
		time.Sleep(2*time.Minute + time.Second)
		w.want(v1.Stopping)
		stop()
		agree()
		setClock(w, -24*time.Hour)
		w.console.held.Store(false) // and it matches too late
		stop = restart(w, func() {})
		wantTimedOut(w)
		require.Equal(t, uint64(1), w.want(v1.Running).Status.Totals.Crashes, "the retry does not wait for the clock")
		stop()
	})
}

// TestClockJumpDuringStart: the timeout is measured, and begins anew with berth.
func TestClockJumpDuringStart(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -24 * time.Hour, "ahead": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				stop := w.run()
				slowWorld(w, limited)
				time.Sleep(time.Minute)
				stop = restart(w, stop)
				synctest.Wait()
				setClock(w, jump)
				time.Sleep(119 * time.Second)
				w.want(v1.Starting)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				wantTimedOut(w)
				stop()
			})
		})
	}
}

// TestStopOfTimedOutStart: a client that stops or restarts the container decides what
// follows.
func TestStopOfTimedOutStart(t *testing.T) {
	live(t, func(w *world) {
		slowWorld(w, limited)
		w.engine.Outside.Deafen(server)
		time.Sleep(2*time.Minute + time.Second)
		w.want(v1.Stopping)
		require.NoError(t, intent.Power(w.store, "mc", intent.Restart))
		time.Sleep(31 * time.Second)
		c := w.want(v1.Starting)
		require.Zero(t, c.Status.RestartCount)
		time.Sleep(2*time.Minute + time.Second)
		w.want(v1.Stopping)
		w.change(off)
		time.Sleep(31 * time.Second)
		require.Nil(t, w.want(v1.Exit).Status.NextRetryAt)
	})
}

func TestSlowInstallationIsReportedOnce(t *testing.T) {
	live(t, func(w *world) {
		w.rec.Warn.Install = 10 * time.Minute
		w.create(nil)
		time.Sleep(30 * time.Minute)
		c := w.want(v1.Installing)
		require.Equal(t, "the install script has run since 00:00:00 UTC and is killed after 1h0m0s, counted from its start, or from the last start of berth if that is later", c.Status.Message)
		require.Equal(t, v1.ReasonInstallSlow, v1.Unready(c.Spec, c.Status))
		require.Len(t, warnings(w), 1)
		w.engine.Outside.Exit(installer, 0)
		require.Equal(t, v1.True, v1.FindCondition(w.want(v1.Ready).Status.Conditions, v1.Installed).Status)
	})
}

// TestFailingPullIsReportedOnce: a registry that does not answer is one warning,
// however often the pull is retried.
func TestFailingPullIsReportedOnce(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.RemoveImage("i")
		w.engine.Outside.RefusePull("i", runtime.ErrStalled)
		w.create(nil)
		time.Sleep(10 * time.Minute)
		list := warnings(w)
		require.Len(t, list, 1)
		require.Equal(t, v1.ReasonPullFailed, list[0].Reason)
	})
}
