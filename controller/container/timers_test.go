package container_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/runtime"
)

// setClock sets the host's clock, which the reconciler and the engine read, by d.
func setClock(w *world, d time.Duration) { w.jump.Store(int64(d)) }

// restart restarts berth: its memory is lost.
func restart(w *world, stop func()) func() {
	stop()
	w.rec.ForgetMemory()
	return w.run()
}

// TestClockJumpDuringStop: the grace period has the requested duration.
func TestClockJumpDuringStop(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -time.Hour, "ahead": time.Hour, "not": 0} {
		t.Run(name, func(t *testing.T) {
			live(t, func(w *world) {
				w.installed(func(s *v1.ContainerSpec) { s.Stop.Timeout = v1.Duration(time.Minute) })
				w.change(on)
				w.engine.Outside.Deafen(server)
				w.change(off)
				w.want(v1.Stopping)
				time.Sleep(10 * time.Second)
				setClock(w, jump)
				_, err := w.rec.Reconcile(t.Context(), "mc")
				require.NoError(t, err)
				time.Sleep(49 * time.Second)
				w.want(v1.Stopping)
				require.Zero(t, w.count("kill", server))
				time.Sleep(2 * time.Second)
				synctest.Wait()
				require.Equal(t, 1, w.count("kill", server))
			})
		})
	}
}

// TestGracePeriodBeginsWithSignal: berth was killed between the record of
// the stop and the signal, and restarted late.
func TestGracePeriodBeginsWithSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(nil)
		w.change(on)
		agree := w.refuse("signal", server, runtime.ErrUnavailable)
		w.change(off)
		w.want(v1.Stopping)
		stop()
		time.Sleep(time.Hour)
		agree()
		stop = restart(w, func() {})
		w.want(v1.Exit)
		require.Equal(t, []string{"SIGTERM"}, w.engine.Outside.Signals(server))
		require.Zero(t, w.count("kill", server))
		stop()
	})
}

// TestGracePeriodRestartsWithBerth: the duration of the restart is unknown.
func TestGracePeriodRestartsWithBerth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Deafen(server)
		w.change(off)
		w.want(v1.Stopping)
		stop = restart(w, stop)
		time.Sleep(29 * time.Second)
		w.want(v1.Stopping)
		time.Sleep(2 * time.Second)
		w.want(v1.Exit)
		require.Equal(t, 1, w.count("kill", server))
		require.Equal(t, []string{"SIGTERM"}, w.engine.Outside.Signals(server), "it was asked once")
		stop()
	})
}

// TestRefusedSignalEndsInKill: the grace period begins with the first
// attempt that the engine answered.
func TestRefusedSignalEndsInKill(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.refuse("signal", server, runtime.ErrInvalid)
		w.change(off)
		time.Sleep(25 * time.Second)
		w.want(v1.Stopping)
		time.Sleep(time.Minute) // for the backoff of the attempts
		w.want(v1.Exit)
	})
}

// TestClockJumpDuringInstall: the timeout is measured, and exit code 0 is a success
// however late it is observed.
func TestClockJumpDuringInstall(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -24 * time.Hour, "ahead": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			live(t, func(w *world) {
				w.create(nil)
				time.Sleep(10 * time.Minute)
				setClock(w, jump)
				time.Sleep(49 * time.Minute)
				w.want(v1.Installing)
				require.True(t, w.engine.Outside.State(installer).Running)
				time.Sleep(2 * time.Minute)
				c := w.want(v1.Failed)
				require.Equal(t, "TimedOut", v1.FindCondition(c.Status.Conditions, v1.Installed).Reason)
			})
		})
	}
}

// TestExitCodeZeroAfterInstallTimeout: berth was away when the timeout passed.
func TestExitCodeZeroAfterInstallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run()
		w.create(nil)
		stop()
		time.Sleep(2 * time.Hour)
		w.engine.Outside.Exit(installer, 0)
		stop = restart(w, func() {})
		w.want(v1.Ready)
		stop()
	})
}

// TestClockJumpUnderPressure: the grace period to free space is not shortened.
func TestClockJumpUnderPressure(t *testing.T) {
	live(t, func(w *world) {
		size := w.limited()
		w.installed(nil)
		w.change(on)
		size(1001)
		w.want(v1.Running)
		setClock(w, time.Hour)
		_, err := w.rec.Reconcile(t.Context(), "mc")
		require.NoError(t, err)
		time.Sleep(30 * time.Second)
		w.want(v1.Running)
		time.Sleep(2 * time.Minute)
		w.want(v1.Exit)
	})
}

// TestKillBeforeFirstRun: a kill ends a run that was started from outside, and the next
// start is another run.
func TestKillBeforeFirstRun(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.engine.Outside.Deafen(server)
		require.NoError(t, w.engine.Outside.StartOutside(server))
		w.want(v1.Stopping)
		require.NoError(t, intent.Power(w.store, "mc", intent.Kill))
		w.want(v1.Exit)
		require.False(t, w.engine.Outside.State(server).Running)
		require.NoError(t, intent.Power(w.store, "mc", intent.Start))
		require.EqualValues(t, 2, w.want(v1.Running).Status.ObservedRun)
	})
}
